//! Which table describes a processor, by everything that it shows of itself.
//!
//! Family and model are a claim: a hypervisor shows another model as it likes. What it cannot do is
//! invent a feature that the silicon lacks, and what it seldom does is hide many. So a table is out as
//! soon as something is there that its core cannot have; what is missing counts against it, on a
//! machine without a hypervisor strictly. docs/method/identification.md has the rules and how good
//! they are.
//!
//! | file | concern |
//! |---|---|
//! | `fact` | what a dump shows: [`Fact`] |
//! | `answer` | [`Identity`]: the answer, with evidence and contradictions |
//! | `weigh` | one table against a dump |
//! | `decide` | [`identify`]: all tables |
//! | `settle` | what measurement decides among candidates |

mod answer;
mod decide;

pub use answer::{By, Claim, Contradiction, Fact, Identity, Measured, Rate, settle};
pub use decide::identify;
