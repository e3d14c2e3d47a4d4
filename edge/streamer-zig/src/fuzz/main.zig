//! Entry point.

pub fn main() void {}
