//! Counts of sockets → those of the host: the same sums that are made where sockets are not counted apart.

use tma::counts::{Counts, GroupCounts, Reading};

/// The counts of all scopes together, for each kind of core.
pub fn together(scopes: &[Counts]) -> Vec<Counts> {
    let mut all: Vec<Counts> = Vec::new();
    for counts in scopes {
        match all.iter_mut().find(|sum| sum.core == counts.core) {
            None => all.push(Counts { scope: None, ..counts.clone() }),
            Some(sum) => {
                for (sum, group) in sum.groups.iter_mut().zip(&counts.groups) {
                    add(sum, group);
                }
            }
        }
    }
    all
}

/// Adds a group of another scope: readings that were made at the same times one by one, others all in one.
fn add(sum: &mut GroupCounts, group: &GroupCounts) {
    match (sum, group) {
        (
            GroupCounts::Live { readings, enabled, .. },
            GroupCounts::Live { readings: other, enabled: more, .. },
        ) => {
            if readings.len() != other.len() {
                *readings = whole(readings);
                readings.iter_mut().zip(&whole(other)).for_each(|(sum, one)| join(sum, one));
            } else {
                readings.iter_mut().zip(other).for_each(|(sum, one)| join(sum, one));
            }
            *enabled += more;
        }
        // A part of the host is not known: nor is the whole.
        (sum, GroupCounts::Missing { .. }) => *sum = group.clone(),
        _ => {}
    }
}

fn whole(readings: &[Reading]) -> Vec<Reading> {
    let mut all = readings.iter().cloned();
    let first = all.next();
    first
        .map(|first| {
            all.fold(first, |mut sum, one| {
                join(&mut sum, &one);
                sum
            })
        })
        .into_iter()
        .collect()
}

fn join(sum: &mut Reading, one: &Reading) {
    sum.enabled += one.enabled;
    sum.running += one.running;
    sum.values.iter_mut().zip(&one.values).for_each(|(sum, one)| *sum += one);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::quantity::Missing;

    fn socket(scope: &str, values: &[u64]) -> Counts {
        let reading = |value: &u64| Reading { enabled: 10, running: 10, values: vec![*value] };
        let readings: Vec<Reading> = values.iter().map(reading).collect();
        let enabled = 10 * values.len() as u64;
        let groups = vec![GroupCounts::Live { events: vec![0], readings, enabled }];
        Counts { scope: Some(scope.to_owned()), groups, ..Counts::default() }
    }

    #[test]
    fn counts_add_up_and_a_missing_part_leaves_no_whole() {
        let two = [socket("socket0", &[1, 2]), socket("socket1", &[10, 20])];
        let all = together(&two);
        assert_eq!((all.len(), all[0].groups[0].total(0)), (1, Ok(33.0)));
        let uneven = [socket("socket0", &[1, 2]), socket("socket1", &[10])];
        assert_eq!(together(&uneven)[0].groups[0].total(0), Ok(13.0));
        let mut refused = two;
        let why = Missing::NotPermitted("x".into());
        refused[1].groups[0] = GroupCounts::Missing { events: vec![0], why: why.clone() };
        assert_eq!(together(&refused)[0].groups[0].total(0), Err(why));
    }
}
