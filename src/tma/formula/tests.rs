//! Formulas as the vendors write them, against hand calculation.

use super::*;

/// Events A=1, B=2, C=4, Z=0; anything else is unknown.
struct Values;

impl Resolve for Values {
    fn name(&self, name: &str) -> Option<Leaf> {
        let names = ["A", "B", "C", "Z", "IDQ.MS_UOPS:c1:e1", "4K_Aliasing", "FetchBubbles[≥MIW]"];
        names.iter().position(|n| *n == name).map(|i| Leaf::Event(i as u16))
    }

    fn constant(&self, name: &str) -> Option<Leaf> {
        (name == "SMT_ON").then_some(Leaf::Const(0))
    }
}

struct Given(f64);

impl Inputs for Given {
    fn value(&mut self, leaf: Leaf) -> f64 {
        match leaf {
            Leaf::Event(i) => [1.0, 2.0, 4.0, 0.0, 5.0, 6.0, 7.0][usize::from(i)],
            Leaf::Const(_) => self.0,
            Leaf::Node(_) => f64::NAN,
        }
    }
}

fn eval_smt(text: &str, smt: f64) -> f64 {
    let expr = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let program = Program::compile(&expr, &Values).unwrap();
    program.eval(&mut Given(smt))
}

fn eval(text: &str) -> f64 {
    eval_smt(text, 0.0)
}

#[test]
fn arithmetic_binds_as_in_mathematics() {
    assert_eq!(eval("A + B * C"), 9.0);
    assert_eq!(eval("(A + B) * C"), 12.0);
    assert_eq!(eval("C - B - A"), 1.0);
    assert_eq!(eval("C / B / B"), 1.0);
    assert_eq!(eval("-A + B"), 1.0);
    assert_eq!(eval("2e3 + 1.5e-1"), 2000.15);
    assert_eq!(eval("min(A, B, C) + max(A, C)"), 5.0);
}

#[test]
fn all_three_threshold_dialects_are_understood() {
    for text in
        ["( A > 0.5 ) & ( B > 1 )", "A > 0.5 & B > 1", "A > 0.5 && B > 1", "A > 0.5 and B > 1"]
    {
        assert_eq!(eval(text), 1.0, "{text}");
    }
    assert_eq!(eval("A > 1 | B > 1"), 1.0);
    assert_eq!(eval("A > 1 & B > 1"), 0.0);
}

#[test]
fn the_branch_not_taken_does_not_matter() {
    assert_eq!(eval_smt("( B / 2 ) if #SMT_ON else C", 1.0), 1.0);
    assert_eq!(eval_smt("( B / 2 ) if #SMT_ON else C", 0.0), 4.0);
    assert_eq!(eval("A / Z if #SMT_ON else B"), 2.0);
    let expr = parse("A + ( B if #SMT_ON else C ) * Z").unwrap();
    let program = Program::compile(&expr, &Values).unwrap();
    let smt = Leaf::Const(0);
    let events = |ids: [u16; 3]| ids.map(Leaf::Event).to_vec();
    assert_eq!(program.leaves_given(smt, 1.0), events([0, 1, 3]));
    assert_eq!(program.leaves_given(smt, 0.0), events([0, 2, 3]));
}

#[test]
fn division_by_zero_is_undefined_and_spreads_but_a_share_of_nothing_is_nothing() {
    assert!(eval("A / Z").is_nan());
    assert!(eval("A + A / Z").is_nan());
    assert!(eval("max(0, A / Z)").is_nan());
    assert!(eval("A / Z > 1").is_nan());
    assert!(eval("A if Z / Z else B").is_nan());
    assert_eq!(eval("Z * (A / Z)"), 0.0);
}

#[test]
fn names_keep_modifiers_bounds_and_leading_digits() {
    assert_eq!(eval("IDQ.MS_UOPS:c1:e1 + 4K_Aliasing * FetchBubbles[≥MIW]"), 47.0);
    let mut names = Vec::new();
    let text = "OCR.DEMAND_RFO.L3_MISS:ocr_msr_val=0x103b800002 / 4K_Aliasing";
    parse(text).unwrap().names(&mut |n| names.push(n.to_owned()));
    assert_eq!(names, ["OCR.DEMAND_RFO.L3_MISS:ocr_msr_val=0x103b800002", "4K_Aliasing"]);
}

#[test]
fn printing_and_parsing_again_gives_the_same_tree() {
    for text in [
        "A - (B - C)",
        "(A if B > C else C) / 2",
        "A if B else C if Z else 1",
        "-(A + B) * -C",
        "A / (B * C)",
        "(A > B) & (B > C | A > C)",
        "min(A, max(B, C + 1))",
        "(A > B) == 1",
    ] {
        let expr = parse(text).unwrap();
        let printed = expr.to_string();
        assert_eq!(parse(&printed).unwrap(), expr, "{text} printed as {printed}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let at = |text: &str| parse(text).unwrap_err();
    assert_eq!(at("A + ").at, 4);
    assert_eq!(at("A B").at, 2);
    assert_eq!(at("A $ B").at, 2);
    assert_eq!(at("A > B > C").at, 6);
    assert!(at("min(A)").message.contains("`,`"));
    assert!(at("A if B").message.contains("`else`"));
    assert!(at("#").message.contains("constant"));
    let unknown = Program::compile(&parse("A + Q").unwrap(), &Values);
    assert_eq!(unknown, Err(Uncompiled::Name("Q".to_owned())));
}

#[test]
fn monsters_are_refused_not_followed() {
    assert!(parse(&"(".repeat(10_000)).is_err());
    assert!(parse(&"A+".repeat(100_000)).is_err());
    assert!(parse(&"-".repeat(16_000)).is_err());
    let wide = format!("{}A", "A+".repeat(2_000));
    let expr = parse(&wide).unwrap();
    assert_eq!(expr.to_string().matches('A').count(), 2_001);
    let deep = format!("{}A{}", "(A+".repeat(63), ")".repeat(63));
    assert!(Program::compile(&parse(&deep).unwrap(), &Values).is_ok());
}
