//! Limits what each source address can cause before it has answered anything. A request from a
//! spoofed address sends its victim at most the size of the request itself, plus a small allowance
//! per second. Fixed size: addresses with the same hash share an account, which only makes it
//! smaller; the seed keeps attackers from choosing whose they share.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const TftpSources = @This();

/// New requests: a room of machines behind one address that starts at once, then a steady rate.
const requests_burst = 4000;
const requests_per_s = 1000;
/// Bytes sent beyond those received: 128 blocks of 512 bytes to peers that name no options, then 16
/// per second. A peer that answers gets its share back.
const excess_burst = 64 * 1024;
const excess_per_s = 8 * 1024;

const Account = struct {
    /// Used requests and excess in µs; each second returns one second.
    requests_used: u32 = 0,
    excess_used: u32 = 0,
    settled_at_us: u64 = 0,
    /// Requests that wait for their peer's answer.
    pending: u16 = 0,
};

accounts: []Account,
seed: u64,

pub const count = 4096;

pub fn init(gpa: std.mem.Allocator, seed: u64) error{OutOfMemory}!TftpSources {
    const accounts = try gpa.alloc(Account, count);
    @memset(accounts, .{});
    return .{ .accounts = accounts, .seed = seed };
}

pub fn deinit(sources: *TftpSources, gpa: std.mem.Allocator) void {
    gpa.free(sources.accounts);
    sources.* = undefined;
}

/// Returns the account of an address.
pub fn of(sources: *const TftpSources, ip: base.Ip4) u16 {
    return @intCast(base.mix(ip.toInt(), sources.seed) % count);
}

/// Tells whether one more request is accepted, and charges it.
pub fn chargeRequest(sources: *TftpSources, now_us: u64, source: u16) bool {
    const account = sources.settled(now_us, source);
    if (account.requests_used >= requests_burst) return false;
    account.requests_used += 1;
    assert(account.requests_used <= requests_burst);
    return true;
}

/// Tells whether a packet that is `excess` bytes longer than the request may go to a peer that has
/// not answered, and charges it.
pub fn chargeExcess(sources: *TftpSources, now_us: u64, source: u16, excess: u32) bool {
    const account = sources.settled(now_us, source);
    if (account.excess_used + excess > excess_burst) return false;
    account.excess_used += excess;
    assert(account.excess_used <= excess_burst);
    return true;
}

/// The peer has answered: its address is its own.
pub fn refund(sources: *TftpSources, source: u16, excess: u32) void {
    assert(source < count);
    sources.accounts[source].excess_used -|= excess;
}

pub fn pendingOf(sources: *const TftpSources, source: u16) u16 {
    return sources.accounts[source].pending;
}

pub fn addPending(sources: *TftpSources, source: u16) void {
    assert(source < count);
    sources.accounts[source].pending += 1;
}

pub fn removePending(sources: *TftpSources, source: u16) void {
    assert(sources.accounts[source].pending > 0);
    sources.accounts[source].pending -= 1;
}

fn settled(sources: *TftpSources, now_us: u64, source: u16) *Account {
    assert(source < count);
    const account = &sources.accounts[source];
    const passed_us = now_us -| account.settled_at_us;
    // In steps of 10 ms, so that nothing is lost to rounding.
    const steps = passed_us / 10_000;
    if (steps == 0) return account;
    account.settled_at_us += steps * 10_000;
    const full = 100 * 100;
    const bounded: u32 = @intCast(@min(steps, full));
    account.requests_used -|= bounded * (requests_per_s / 100);
    account.excess_used -|= bounded * (excess_per_s / 100);
    return account;
}

const testing = std.testing;

test "a source has its burst, then its rate, and an answer refunds it" {
    var sources: TftpSources = try .init(testing.allocator, 5);
    defer sources.deinit(testing.allocator);
    const source = sources.of(.init(10, 0, 0, 1));
    var taken: u32 = 0;
    while (sources.chargeExcess(1000, source, 500)) taken += 1;
    try testing.expectEqual(excess_burst / 500, taken);
    sources.refund(source, 500);
    try testing.expect(sources.chargeExcess(1000, source, 500));
    var now_us: u64 = 1000;
    taken = 0;
    while (now_us < 10 * std.time.us_per_s) : (now_us += 3000)
        taken += @intFromBool(sources.chargeExcess(now_us, source, 500));
    try testing.expect(taken >= 150 and taken <= 10 * excess_per_s / 500 + 1);
    taken = 0;
    while (sources.chargeRequest(now_us, source)) taken += 1;
    try testing.expectEqual(requests_burst, taken);
}
