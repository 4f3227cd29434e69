//! Arrows beside a list of lines: each runs from a line to another in a lane of its own.

/// An arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// Line it leaves.
    pub from: usize,
    /// Line its head is at; above `from` where it goes back.
    pub to: usize,
}

/// The characters of arrows.
#[derive(Debug, Clone, Copy)]
pub struct Signs {
    top: char,
    bottom: char,
    side: char,
    dash: char,
    head: char,
    cross: char,
    /// A corner that another arrow runs through.
    through: [char; 2],
    /// An arrow from a line to itself.
    round: char,
}

impl Signs {
    /// Box drawing, or ASCII.
    pub fn new(ascii: bool) -> Self {
        match ascii {
            true => Self {
                top: '+',
                bottom: '+',
                side: '|',
                dash: '-',
                head: '>',
                cross: '+',
                through: ['+', '+'],
                round: 'o',
            },
            false => Self {
                top: '┌',
                bottom: '└',
                side: '│',
                dash: '─',
                head: '►',
                cross: '┼',
                through: ['┬', '┴'],
                round: '○',
            },
        }
    }
}

/// The lane of each arrow, 0 nearest to the lines; `None` for those that have no room among `most`.
pub fn lanes(arrows: &[Arrow], most: usize) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..arrows.len()).collect();
    order.sort_by_key(|i| arrows[*i].from.abs_diff(arrows[*i].to));
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut found = vec![None; arrows.len()];
    for index in order {
        let (low, high) = span(&arrows[index]);
        let free = |lane: &Vec<(usize, usize)>| lane.iter().all(|(a, b)| high < *a || *b < low);
        let lane = match taken.iter().position(free) {
            Some(lane) => lane,
            None if taken.len() < most => {
                taken.push(Vec::new());
                taken.len() - 1
            }
            None => continue,
        };
        taken[lane].push((low, high));
        found[index] = Some(lane);
    }
    found
}

fn span(arrow: &Arrow) -> (usize, usize) {
    (arrow.from.min(arrow.to), arrow.from.max(arrow.to))
}

/// The gutter of each of `lines` lines, all of the same width.
pub fn gutter(
    arrows: &[Arrow],
    lanes: &[Option<usize>],
    lines: usize,
    signs: Signs,
) -> Vec<String> {
    let count = lanes.iter().flatten().max().map_or(0, |most| most + 1);
    let width = 2 * count + 1;
    let mut rows = vec![vec![' '; width]; lines];
    if count == 0 {
        return vec![String::new(); lines];
    }
    for (arrow, lane) in arrows.iter().zip(lanes) {
        let Some(lane) = lane else { continue };
        let column = 2 * (count - 1 - lane);
        let (low, high) = span(arrow);
        for (line, row) in rows.iter_mut().enumerate().take(high + 1).skip(low) {
            let end = line == low || line == high;
            if end {
                for sign in &mut row[column + 1..width] {
                    *sign = match *sign {
                        sign if sign == signs.side => signs.cross,
                        sign if sign == signs.top => signs.through[0],
                        sign if sign == signs.bottom => signs.through[1],
                        ' ' => signs.dash,
                        other => other,
                    };
                }
            }
            let crossed = row[column] == signs.dash;
            row[column] = match (line == low, line == high) {
                (true, true) => signs.round,
                (true, false) if crossed => signs.through[0],
                (false, true) if crossed => signs.through[1],
                (true, false) => signs.top,
                (false, true) => signs.bottom,
                _ if row[column] == signs.dash => signs.cross,
                _ => signs.side,
            };
        }
        if let Some(row) = rows.get_mut(arrow.to) {
            row[width - 1] = signs.head;
        }
    }
    rows.into_iter().map(|row| row.into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_that_overlap_get_lanes_of_their_own() {
        let arrows = [Arrow { from: 0, to: 3 }, Arrow { from: 1, to: 2 }, Arrow { from: 3, to: 3 }];
        let lanes = lanes(&arrows, 8);
        let drawn = gutter(&arrows, &lanes, 4, Signs::new(true));
        assert_eq!(drawn, ["+----", "| +--", "| +->", "+-o->"]);
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let all = vec![Arrow { from: 0, to: 9 }; 5];
        assert_eq!(lanes(&all, 2).iter().flatten().count(), 2);
    }
}
