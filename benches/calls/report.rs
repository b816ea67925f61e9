//! Collects rows, and prints them as a table for people and as JSON.

use serde_json::{Value, json};

use crate::race::Times;

/// All rows of one run.
#[derive(Default)]
pub struct Report {
    rows: Vec<Value>,
}

impl Report {
    /// A row: the driver against the floor, the script, or whatever took part.
    pub fn row(&mut self, name: &str, times: &[Times]) {
        let driver = &times[0];
        let mut line = format!("{name:34}");
        let mut row = json!({"row": name, "rounds": driver.times.len()});
        for one in times {
            let millis = one.median().as_secs_f64() * 1e3;
            line += &format!(" {:>9} {millis:9.3} ms", one.name);
            row[one.name] = json!({"median_ms": round(millis)});
            if one.name != driver.name {
                let ratio = driver.to(one);
                line += &format!(" ({})", factor(ratio));
                row[one.name]["driver_to_it"] = json!(round(ratio));
            }
        }
        println!("{line}");
        self.rows.push(row);
    }

    /// A row of numbers that are no race.
    pub fn numbers(&mut self, name: &str, numbers: &[(&str, f64)]) {
        let mut line = format!("{name:34}");
        let mut row = json!({"row": name});
        for (what, number) in numbers {
            line += &format!(" {what} {number:.3}");
            row[what] = json!(round(*number));
        }
        println!("{line}");
        self.rows.push(row);
    }

    pub fn json(&self) -> String {
        let lines: Vec<String> = self.rows.iter().map(Value::to_string).collect();
        format!("[\n{}\n]\n", lines.join(",\n"))
    }
}

fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// How the driver's time compares: 1.10 x is a tenth more.
fn factor(ratio: f64) -> String {
    if ratio < 0.5 {
        format!("{:.1} x faster", 1.0 / ratio)
    } else {
        format!("{ratio:.2} x")
    }
}
