//! Module `prepare`: turns a Debian or Ubuntu root into one that boots from an edge, and back. It
//! only adds files and edits none, so `--undo` removes every change.

pub const run = @import("command.zig").run;

test {
    _ = @import("checks.zig");
    _ = @import("command.zig");
    _ = @import("files.zig");
    _ = @import("options.zig");
    _ = @import("root_directory.zig");
}
