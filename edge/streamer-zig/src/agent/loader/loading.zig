//! The files that a device loads before its session, for its boot's report. No events: they change
//! nothing but what the report says. `boots` is the `Boots` of `boots.zig`.

const std = @import("std");
const core = @import("core");
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const Ref = core.boot.Table.Ref;
const Transfers = core.boot.Transfers;

/// A file that a boot's device requests by TFTP or HTTP.
pub const Request = struct { ref: Ref, at_us: u64, protocol: Transfers.Protocol, name: []const u8 };

/// Returns the index for `onProgress`.
pub fn onRequest(boots: anytype, request: Request) u8 {
    const boot = loadingBoot(boots, request.ref) orelse return Transfers.none;
    const age_us = request.at_us -| boot.started_us;
    return boot.transfers.onRequest(age_us, request.protocol, request.name);
}

/// The file does not exist.
pub fn onMissing(boots: anytype, request: Request) void {
    const boot = loadingBoot(boots, request.ref) orelse return;
    const age_us = request.at_us -| boot.started_us;
    boot.transfers.onMissing(age_us, request.protocol, request.name);
}

pub fn onProgress(boots: anytype, ref: Ref, file: u8, at_us: u64, step: Transfers.Progress) void {
    const boot = boots.table.get(ref) orelse return;
    if (boot.isOver()) return;
    assert(boot.outcome == null);
    boot.touched = true;
    boot.transfers.onProgress(file, at_us -| boot.started_us, step);
}

/// Null: a device that has its session loads nothing more, this comes from somebody else.
fn loadingBoot(boots: anytype, ref: Ref) ?*Boot {
    const boot = boots.table.get(ref) orelse return null;
    if (boot.isOver() or boot.stream_was_open) return null;
    assert(boot.outcome == null);
    boot.touched = true;
    return boot;
}
