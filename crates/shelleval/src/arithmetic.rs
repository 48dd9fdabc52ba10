//! `$((…))`: integers of 64 bits, the operators of C without assignments, `++` and `--`.

use alloc::string::{String, ToString};

/// Binary operators, longer ones before their beginnings, with how tightly they bind.
const BINARY: [(&str, u8); 18] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];
/// Parentheses and signs in each other.
const MAX_DEPTH: usize = 16;

/// The value of an expression. `variable` is asked for values.
pub fn evaluate(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<i64, String> {
    let mut reader = Reader { rest: text, variable, depth: 0 };
    let value = reader.ternary(true)?;
    match reader.peek() {
        None => Ok(value),
        Some('=') => Err("arithmetic: this shell does not know assignments in `$((…))`".to_string()),
        Some(c) => Err(alloc::format!("arithmetic: `{c}` has no place there")),
    }
}

struct Reader<'t> {
    rest: &'t str,
    variable: &'t dyn Fn(&str) -> Option<String>,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        self.peek();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// `a ? b : c`. A part that is not `live` is parsed and not evaluated.
    fn ternary(&mut self, live: bool) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(alloc::format!("arithmetic: nested deeper than {MAX_DEPTH} levels"));
        }
        let condition = self.binary(0, live)?;
        let mut value = condition;
        if self.take("?") {
            let first = self.ternary(live && condition != 0)?;
            if !self.take(":") {
                return Err("arithmetic: `?` without `:`".to_string());
            }
            let second = self.ternary(live && condition == 0)?;
            value = if condition != 0 { first } else { second };
        }
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, least: u8, live: bool) -> Result<i64, String> {
        let mut left = self.unary(live)?;
        loop {
            self.peek();
            let next = BINARY.into_iter().find(|(operator, _)| self.rest.starts_with(operator));
            let Some((operator, binds)) = next.filter(|(_, binds)| *binds > least) else { return Ok(left) };
            self.take(operator);
            if self.rest.starts_with('=') && !matches!(operator, "==" | "!=" | "<=" | ">=") {
                return Err("arithmetic: this shell does not know assignments in `$((…))`".to_string());
            }
            let live = live
                && match operator {
                    "&&" => left != 0,
                    "||" => left == 0,
                    _ => true,
                };
            let right = self.binary(binds, live)?;
            left = apply(operator, left, right, live)?;
        }
    }

    fn unary(&mut self, live: bool) -> Result<i64, String> {
        let Some(c) = self.peek() else { return Err("arithmetic: a number is missing at the end".to_string()) };
        if self.rest.starts_with("++") || self.rest.starts_with("--") {
            return Err("arithmetic: this shell does not know `++` and `--`".to_string());
        }
        if "-+!~(".contains(c) {
            self.take(c.encode_utf8(&mut [0; 4]));
            if c == '(' {
                let value = self.ternary(live)?;
                if !self.take(")") {
                    return Err("arithmetic: `(` is never closed".to_string());
                }
                return Ok(value);
            }
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(alloc::format!("arithmetic: nested deeper than {MAX_DEPTH} levels"));
            }
            let value = self.unary(live)?;
            self.depth -= 1;
            return Ok(match c {
                '-' => value.wrapping_neg(),
                '!' => (value == 0).into(),
                '~' => !value,
                _ => value,
            });
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if shellparse::is_name(word) {
            let value = (self.variable)(word).unwrap_or_default();
            let value = value.trim();
            return match value {
                "" => Ok(0),
                value => number(value).ok_or_else(|| alloc::format!("arithmetic: {word}: `{value}` is not a number")),
            };
        }
        match number(word) {
            Some(value) => Ok(value),
            None if word.is_empty() => Err(alloc::format!("arithmetic: a number is missing at `{c}`")),
            None => Err(alloc::format!("arithmetic: `{word}` is not a number")),
        }
    }
}

/// As C writes it: decimal, `0x…`, `0…`.
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) if !hexadecimal.starts_with(['+', '-']) => i64::from_str_radix(hexadecimal, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8),
        _ => digits.parse(),
    };
    value.ok().map(|value| if negative { value.wrapping_neg() } else { value })
}

fn apply(operator: &str, left: i64, right: i64, live: bool) -> Result<i64, String> {
    Ok(match operator {
        "||" => (left != 0 || right != 0).into(),
        "&&" => (left != 0 && right != 0).into(),
        "==" => (left == right).into(),
        "!=" => (left != right).into(),
        "<=" => (left <= right).into(),
        ">=" => (left >= right).into(),
        "<" => (left < right).into(),
        ">" => (left > right).into(),
        "<<" => left.wrapping_shl(right as u32),
        ">>" => left.wrapping_shr(right as u32),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        _ if right == 0 && live => return Err("arithmetic: division by zero".to_string()),
        _ if right == 0 => 0,
        "/" => left.wrapping_div(right),
        _ => left.wrapping_rem(right),
    })
}
