//! Tree, evaluation, thresholds, bottleneck, advice.
