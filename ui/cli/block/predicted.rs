//! Predictions beside the measurements: of the measured core, of those that `--predict` names, and of
//! another core that `--uarch` names.

use super::arguments::{BlockArgs, Format};
use crate::settings::Settings;
use bench::Measurement;
use engine::core_model::CoreModel;
use engine::predict::Predictor;
use isa::code::parse_hex;
use report::documents::block::BlockReport;
use std::sync::Arc;
use tma::{Core, Result};

/// The measurements with their predictions.
pub fn predicted(
    args: &BlockArgs,
    settings: &Settings,
    model: &CoreModel,
    measured: Vec<Measurement>,
) -> Result<Vec<BlockReport>> {
    let mut predictors = predictors(args, settings, model)?;
    let mut reports = Vec::new();
    for measurement in measured {
        let bytes =
            parse_hex(&measurement.block.hex).ok().filter(|_| measurement.settings.is_some());
        let mut predictions = Vec::new();
        for predictor in predictors.iter_mut().filter(|_| bytes.is_some()) {
            predictions.extend(predictor.predict(bytes.as_deref().unwrap_or_default()));
        }
        reports.push(BlockReport { measurement, predictions });
    }
    Ok(reports)
}

/// One for this core if its ports are shown, and one for each core that is named. What `--uarch` says of
/// a core that is not this one can only be predicted.
fn predictors(args: &BlockArgs, settings: &Settings, model: &CoreModel) -> Result<Vec<Predictor>> {
    let mut all = Vec::new();
    if args.ports || matches!(args.format, Format::Json) {
        let own = Predictor::new(model.clone(), true)?;
        all.extend((args.ports || own.has_ports()).then_some(own));
    }
    // Where only that table describes this machine, it is the measured core with --ports or JSON already.
    let named = settings.core()?;
    let is_new = named.foreign && (all.is_empty() || model.core.uarch() != named.uarch());
    let forced = settings.uarch.iter().filter(|name| is_new && !args.predict.contains(name));
    for name in forced.chain(&args.predict) {
        let core = Arc::new(Core::modelled(settings.library, name)?);
        let same = model.core.uarch() == core.uarch() && !model.core.foreign;
        all.push(Predictor::new(CoreModel::new(core, None)?, same)?);
    }
    Ok(all)
}
