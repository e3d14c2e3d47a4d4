//! Decides when a running edge hands its sockets to a new process of its program. Streams resume by
//! HELLO, so devices that run do not notice; firmware and loaders cannot resume a download, so the
//! edge waits for a moment without one. Write caches that end with the process are handed over, and
//! never given up: as long as there is one that the next program does not take, or that cannot be
//! handed over, the edge continues as it is.

const std = @import("std");
const assert = std.debug.assert;

/// In a boot storm there may be no moment without a download; a boot that fails by it is repeated
/// by its firmware.
const patience_us = 5 * 60 * std.time.us_per_s;

/// A disk that does not take the hand-over of write caches is not asked again sooner: each attempt
/// keeps the edge waiting.
const retry_us = 10 * std.time.us_per_s;

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
    /// Open write caches that end with the process.
    volatile_caches: u32,
    /// The successor knows the format in which they would be handed over.
    takes_caches: bool,
};

pub const Decision = enum {
    none,
    refused,
    awaits_program,
    awaits_caches,
    awaits_downloads,
    /// Write caches could not be handed over; they will be tried again.
    awaits_handover,
    due,
};

pub const Exchange = @This();

/// Null: nobody wants it.
asked_us: ?u64 = null,
/// Handing over is not tried before.
not_before_us: u64 = 0,

/// A second request changes nothing.
pub fn ask(exchange: *Exchange, now_us: u64) void {
    exchange.asked_us = exchange.asked_us orelse now_us;
    assert(exchange.asked_us.? <= now_us);
}

/// After `due`, the caller hands the write caches over, and says how that ended: `onHandover`.
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
    if (load.volatile_caches > 0 and !load.takes_caches) return .awaits_caches;
    if (load.downloads > 0 and now_us - asked_us < patience_us) return .awaits_downloads;
    return if (now_us < exchange.not_before_us) .awaits_handover else .due;
}

/// Write caches were handed over, or there are none: the exchange is over for this program,
/// whatever follows. Where they could not be, it continues as it is, and tries again.
pub fn onHandover(exchange: *Exchange, now_us: u64, is_complete: bool) Decision {
    assert(exchange.asked_us != null);
    assert(now_us >= exchange.not_before_us);
    if (!is_complete) {
        exchange.not_before_us = now_us + retry_us;
        return .awaits_handover;
    }
    exchange.asked_us = null;
    return .due;
}

const testing = std.testing;
const quiet: Load =
    .{ .successor = .ready, .downloads = 0, .volatile_caches = 0, .takes_caches = true };

test "without a request nothing is exchanged, and one request is one exchange" {
    var exchange: Exchange = .{};
    try testing.expectEqual(.none, exchange.decide(1, quiet));
    exchange.ask(2);
    exchange.ask(3);
    try testing.expectEqual(.due, exchange.decide(3, quiet));
    try testing.expectEqual(.due, exchange.onHandover(3, true));
    try testing.expectEqual(.none, exchange.decide(4, quiet));
}

test "a download delays an exchange for as long as patience lasts since the first request" {
    var exchange: Exchange = .{};
    exchange.ask(1000);
    var busy = quiet;
    busy.downloads = 1;
    try testing.expectEqual(.awaits_downloads, exchange.decide(1000, busy));
    exchange.ask(2000);
    try testing.expectEqual(.awaits_downloads, exchange.decide(1000 + patience_us - 1, busy));
    try testing.expectEqual(.due, exchange.decide(1000 + patience_us, busy));
}

test "a write cache that ends with the process is never given up to a program that takes none" {
    var exchange: Exchange = .{};
    exchange.ask(0);
    var writing = quiet;
    writing.volatile_caches = 1;
    try testing.expectEqual(.due, exchange.decide(0, writing));
    writing.takes_caches = false;
    try testing.expectEqual(.awaits_caches, exchange.decide(1000 * patience_us, writing));
    writing.volatile_caches = 0;
    try testing.expectEqual(.due, exchange.decide(1000 * patience_us, writing));
}

test "write caches that cannot be handed over keep the program, which tries again later" {
    var exchange: Exchange = .{};
    exchange.ask(5);
    try testing.expectEqual(.due, exchange.decide(5, quiet));
    try testing.expectEqual(.awaits_handover, exchange.onHandover(5, false));
    try testing.expectEqual(.awaits_handover, exchange.decide(4 + retry_us, quiet));
    // A download that has begun meanwhile is waited for as well.
    var busy = quiet;
    busy.downloads = 1;
    try testing.expectEqual(.awaits_downloads, exchange.decide(5 + retry_us, busy));
    try testing.expectEqual(.due, exchange.decide(5 + retry_us, quiet));
    try testing.expectEqual(.due, exchange.onHandover(5 + retry_us, true));
    try testing.expectEqual(.none, exchange.decide(6 + retry_us, quiet));
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
