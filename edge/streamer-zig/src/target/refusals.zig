//! Tells the console which other edges of the site do not take this boot, and why: each once, however often they are asked in turn.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const Endpoint = base.Endpoint;
const RefuseCode = stream.RefuseCode;

pub const Refusals = struct {
    told: base.BoundedArray(Told, stream.ticket.edges_max) = .empty,

    const Told = struct { edge: Endpoint, code: RefuseCode };

    /// True when it was not told yet. Of more edges than a WELCOME names the last ones are told each time.
    pub fn isNew(refusals: *Refusals, edge: Endpoint, code: RefuseCode) bool {
        for (refusals.told.slice()) |*known| if (known.edge.eql(edge)) {
            defer known.code = code;
            return known.code != code;
        };
        refusals.told.append(.{ .edge = edge, .code = code }) catch {};
        return true;
    }

    /// The boot goes on somewhere.
    pub fn clear(refusals: *Refusals) void {
        refusals.told.clear();
    }
};

/// Of another edge that was shown this machine's ticket.
pub fn reasonOf(code: RefuseCode) []const u8 {
    return switch (code) {
        .token_refused => "it does not take the ticket: it has other keys of the site, the ticket is over, or the boot has gone on further elsewhere",
        .version_missing => "it does not have this disk",
        .busy => "it serves as many machines as it can",
        .no_cipher => "it does not give its disks in clear text",
        .cache_elsewhere => "what this machine has written is at its own edge",
        .cache_lost, .cache_version, .cache_failed => "it cannot keep what this machine writes",
    };
}

const testing = std.testing;

test "an edge's refusal is told once, until its reason is another or the boot has gone on" {
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
