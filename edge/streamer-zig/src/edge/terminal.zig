//! The output of this program: results on standard output, everything else on standard error, each
//! line in one write.

const std = @import("std");
const host = @import("host");

pub const Terminal = struct {
    pub fn out(_: *Terminal, text: []const u8) void {
        host.log.print(1, text);
    }

    /// Prints one sentence on standard error; returns the exit code of a failed command.
    pub fn fail(_: *Terminal, comptime format: []const u8, arguments: anytype) u8 {
        host.log.info(format, arguments);
        return 1;
    }
};
