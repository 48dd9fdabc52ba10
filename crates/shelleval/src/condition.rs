//! `test` and `[`: the rules of POSIX for up to four arguments.

use alloc::string::String;

use crate::world::Stat;

/// Whether it holds. `stat` is asked what stands at a path as it is written.
pub(crate) fn holds(arguments: &[String], stat: &dyn Fn(&str) -> Option<Stat>) -> Result<bool, String> {
    let words: [&str; 4] = core::array::from_fn(|at| arguments.get(at).map_or("", String::as_str));
    match (arguments.len(), words) {
        (0, _) => Ok(false),
        (1, [text, ..]) => Ok(!text.is_empty()),
        (3, [left, operator, right, _]) if !matches!(left, "!") || is_binary(operator) => binary(left, operator, right),
        (2..=4, ["!", ..]) => holds(&arguments[1..], stat).map(|holds| !holds),
        (2, [operator, operand, ..]) => unary(operator, operand, stat),
        _ => Err("more than this shell knows (join conditions with && and ||)".into()),
    }
}

fn unary(operator: &str, operand: &str, stat: &dyn Fn(&str) -> Option<Stat>) -> Result<bool, String> {
    let of_file = |is: &dyn Fn(Stat) -> bool| Ok(!operand.is_empty() && stat(operand).is_some_and(is));
    match operator {
        "-n" => Ok(!operand.is_empty()),
        "-z" => Ok(operand.is_empty()),
        "-e" => of_file(&|_| true),
        "-f" => of_file(&|stat| stat.is_file),
        "-d" => of_file(&|stat| stat.is_directory),
        "-s" => of_file(&|stat| stat.size > 0),
        _ => Err(alloc::format!("{operator}: this shell knows -e, -f, -d, -s, -n and -z")),
    }
}

fn is_binary(operator: &str) -> bool {
    matches!(operator, "=" | "!=" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")
}

fn binary(left: &str, operator: &str, right: &str) -> Result<bool, String> {
    match operator {
        "=" => return Ok(left == right),
        "!=" => return Ok(left != right),
        _ if is_binary(operator) => {}
        _ => return Err(alloc::format!("{operator}: this shell knows =, !=, -eq, -ne, -lt, -le, -gt and -ge")),
    }
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| alloc::format!("{text}: not a number"));
    let (left, right) = (number(left)?, number(right)?);
    Ok(match operator {
        "-eq" => left == right,
        "-ne" => left != right,
        "-lt" => left < right,
        "-le" => left <= right,
        "-gt" => left > right,
        _ => left >= right,
    })
}
