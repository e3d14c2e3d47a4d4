//! Tells the console which other edges of the site do not take over this boot, and why: each once,
//! however often they are tried in turn.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const Endpoint = base.Endpoint;
const RefuseCode = stream.RefuseCode;

pub const Refusals = @This();

told: base.BoundedArray(ReportedRefusal, stream.ticket.edges_max) = .empty,

const ReportedRefusal = struct { edge: Endpoint, code: RefuseCode };

/// Returns true if it is new. With more edges than a WELCOME names, the last ones are reported
/// each time.
pub fn isNew(refusals: *Refusals, edge: Endpoint, code: RefuseCode) bool {
    for (refusals.told.slice()) |*known| if (known.edge.eql(edge)) {
        defer known.code = code;
        return known.code != code;
    };
    refusals.told.append(.{ .edge = edge, .code = code }) catch {};
    return true;
}

/// The boot continues on an edge.
pub fn clear(refusals: *Refusals) void {
    refusals.told.clear();
}

/// Refusal of another edge that was shown this machine's ticket.
pub fn reasonOf(code: RefuseCode) []const u8 {
    return switch (code) {
        .token_refused => "it does not accept the ticket: it has other keys of the site, the " ++
            "ticket has expired, or the boot has moved on elsewhere",
        .version_missing => "it does not have this disk",
        .busy => "it is at its limit of machines, or another machine with this MAC address runs",
        .no_cipher => "it does not serve its disks in clear text",
        .identity_refused => "it does not know this machine's key",
        .cache_elsewhere => "this machine's writes are stored on another edge",
        .cache_lost, .cache_version, .cache_failed => "it cannot store this machine's writes",
    };
}

const testing = std.testing;

test "an edge's refusal is reported once, until its reason changes or the boot has continued" {
    var refusals: Refusals = .{};
    const first: Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 6910 };
    const second: Endpoint = .{ .ip = .init(10, 0, 0, 2), .port = 6910 };
    try testing.expect(refusals.isNew(first, .version_missing));
    try testing.expect(refusals.isNew(second, .version_missing));
    for (0..3) |_| {
        try testing.expect(!refusals.isNew(first, .version_missing));
        try testing.expect(!refusals.isNew(second, .version_missing));
    }
    try testing.expect(refusals.isNew(first, .busy));
    try testing.expect(!refusals.isNew(second, .version_missing));
    refusals.clear();
    try testing.expect(refusals.isNew(second, .version_missing));
}
