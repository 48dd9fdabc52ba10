//! The results of an ISA.

use super::budget::Budget;
use super::measurement::{Measurement, find};
use crate::isa::Isa;

/// The measurements on an ISA.
pub struct Results {
    pub isa: Isa,
    pub budgets: Vec<Budget>,
    pub measured: Vec<Measurement>,
    pub notes: Vec<String>,
}

/// The problems, one line each.
pub fn found_problems(budgets: &[Budget], measured: &[Measurement]) -> Vec<String> {
    let mut problems = Vec::new();
    for budget in budgets {
        let (name, most, unit) = (&budget.name, budget.budget, &budget.unit);
        match find(measured, name) {
            None => problems.push(format!("{name}: not measured")),
            Some(found) if found.unit != *unit => {
                problems.push(format!("{name}: measured in {}, the budget is in {unit}", found.unit));
            }
            Some(found) if found.value > most => {
                problems.push(format!("{name}: {} {unit}, {} above the budget", found.value, found.value - most));
            }
            Some(found) => problems.extend(budget.worse_than_peers(found.value)),
        }
    }
    for measurement in measured {
        if !budgets.iter().any(|budget| budget.name == measurement.name) {
            problems.push(format!("{}: measured, but tests/budgets.toml has no such row", measurement.name));
        }
    }
    problems
}
