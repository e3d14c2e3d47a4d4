//! One TFTP transfer whose peer has answered: what was requested, and its progress.

const std = @import("std");
const tftp = @import("wire").tftp;
const BootPath = @import("../boot/handle.zig").BootPath;
const Transfer = @import("event.zig").Transfer;
const TftpRequests = @import("requests.zig");
const TftpWindow = @import("window.zig");

pub const Session = @This();

/// The same request from the same port this soon after its transfer started is a duplicated packet;
/// a restarted machine is not that fast.
const duplicate_hold_us = std.time.us_per_s;

is_taken: bool = false,
transfer: Transfer = undefined,
window: TftpWindow = undefined,
/// As requested.
requested: tftp.Options = .{},
name_size: u8 = 0,
name_buffer: [TftpRequests.name_size_max]u8 = undefined,
started_at_us: u64 = 0,

pub fn name(session: *const Session) []const u8 {
    return session.name_buffer[0..session.name_size];
}

pub fn isDuplicate(
    session: *const Session,
    now_us: u64,
    path: BootPath,
    options: *const tftp.Options,
) bool {
    if (now_us -| session.started_at_us > duplicate_hold_us) return false;
    if (!std.mem.eql(u8, session.name(), path.name)) return false;
    if (!std.meta.eql(session.transfer.handle, path.handle)) return false;
    return std.meta.eql(session.requested, options.*);
}
