//! Module `prepare`: turns a Debian or Ubuntu root into one that starts from an edge, and back.
//! It only adds files of its own, never edits another's, so that `--undo` takes everything back.

pub const run = @import("command.zig").run;

test {
    _ = @import("checks.zig");
    _ = @import("command.zig");
    _ = @import("files.zig");
    _ = @import("options.zig");
    _ = @import("root_directory.zig");
}
