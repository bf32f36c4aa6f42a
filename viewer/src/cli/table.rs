//! Tables of text.

use crate::query::printable;

/// A table: the first column is aligned to the left, the others to the right.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

/// Longest cell, in characters.
const WIDEST: usize = 100;

impl Table {
    pub(super) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shortened(&printable(&cell))).collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    pub(super) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                line.push_str(&match at {
                    0 => format!("  {cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
