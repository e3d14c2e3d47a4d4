//! Decides when a running edge hands its sockets to a new process of its program. Streams resume by
//! HELLO, so devices that run do not notice; firmware and loaders cannot resume a download, so the
//! edge waits for a moment without one. Write caches that end with the process are never given up:
//! as long as there is one, the edge continues as it is.

const std = @import("std");
const assert = std.debug.assert;

/// In a boot storm there may be no moment without a download; a boot that fails by it is repeated
/// by its firmware.
const patience_us = 5 * 60 * std.time.us_per_s;

/// What is known of the program that is to take over.
pub const Successor = enum(u8) {
    unknown,
    /// It names its version, and this program is kept to return to.
    ready,
    /// It was left once before.
    rejected,
    /// It does not start.
    unfit,
    /// It is the program that this release has replaced.
    replaced,
    /// There is no space to keep this program.
    former_not_kept,
};

/// What would end with this process, and what follows.
pub const Load = struct {
    successor: Successor,
    /// TFTP transfers and HTTP answers in progress.
    downloads: u32,
    /// Open write caches that are kept in memory only.
    volatile_caches: u32,
};

pub const Decision = enum { none, refused, awaits_program, awaits_caches, awaits_downloads, due };

pub const Exchange = @This();

/// Null: nobody wants it.
asked_us: ?u64 = null,

/// A second request changes nothing.
pub fn ask(exchange: *Exchange, now_us: u64) void {
    exchange.asked_us = exchange.asked_us orelse now_us;
    assert(exchange.asked_us.? <= now_us);
}

/// An exchange that is due is begun by the caller; it is over for this process, whatever follows.
pub fn decide(exchange: *Exchange, now_us: u64, load: Load) Decision {
    const asked_us = exchange.asked_us orelse return .none;
    assert(now_us >= asked_us);
    switch (load.successor) {
        .ready => {},
        .unknown => return .awaits_program,
        .rejected, .unfit, .replaced, .former_not_kept => {
            exchange.asked_us = null;
            return .refused;
        },
    }
    if (load.volatile_caches > 0) return .awaits_caches;
    if (load.downloads > 0 and now_us - asked_us < patience_us) return .awaits_downloads;
    exchange.asked_us = null;
    return .due;
}

const testing = std.testing;
const quiet: Load = .{ .successor = .ready, .downloads = 0, .volatile_caches = 0 };

test "without a request nothing is exchanged, and one request is one exchange" {
    var exchange: Exchange = .{};
    try testing.expectEqual(.none, exchange.decide(1, quiet));
    exchange.ask(2);
    exchange.ask(3);
    try testing.expectEqual(.due, exchange.decide(3, quiet));
    try testing.expectEqual(.none, exchange.decide(4, quiet));
}

test "a download delays an exchange for as long as patience lasts since the first request" {
    var exchange: Exchange = .{};
    exchange.ask(1000);
    const busy: Load = .{ .successor = .ready, .downloads = 1, .volatile_caches = 0 };
    try testing.expectEqual(.awaits_downloads, exchange.decide(1000, busy));
    exchange.ask(2000);
    try testing.expectEqual(.awaits_downloads, exchange.decide(1000 + patience_us - 1, busy));
    try testing.expectEqual(.due, exchange.decide(1000 + patience_us, busy));
}

test "a write cache in memory is never given up" {
    var exchange: Exchange = .{};
    exchange.ask(0);
    const writing: Load = .{ .successor = .ready, .downloads = 0, .volatile_caches = 1 };
    try testing.expectEqual(.awaits_caches, exchange.decide(1000 * patience_us, writing));
    try testing.expectEqual(.due, exchange.decide(1000 * patience_us, quiet));
}

test "a program that is not fit to take over ends the request" {
    for ([_]Successor{ .rejected, .unfit, .replaced, .former_not_kept }) |successor| {
        var exchange: Exchange = .{};
        exchange.ask(1);
        var load = quiet;
        load.successor = .unknown;
        try testing.expectEqual(.awaits_program, exchange.decide(1, load));
        load.successor = successor;
        try testing.expectEqual(.refused, exchange.decide(2, load));
        load.successor = .ready;
        try testing.expectEqual(.none, exchange.decide(3, load));
    }
}
