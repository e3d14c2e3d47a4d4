//! Checks of what the edge says to whom: no more bytes than came in, and nothing but cookies, to an address that has not
//! shown a cookie; a token is used by one nonce.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const Trust = @This();

gpa: std.mem.Allocator,
addresses: std.array_hash_map.Auto(u48, Account) = .empty,
tokens: std.array_hash_map.Auto([16]u8, [16]u8) = .empty,
violation: ?[]const u8 = null,

const Account = struct {
    bytes_in: u64 = 0,
    bytes_out: u64 = 0,
    cookies: [4][32]u8 = @splat(@splat(0)),
    cookies_next: u8 = 0,
    is_trusted: bool = false,
};

pub fn deinit(trust: *Trust) void {
    trust.addresses.deinit(trust.gpa);
    trust.tokens.deinit(trust.gpa);
}

pub fn arrived(trust: *Trust, from: base.Endpoint, payload: []const u8) void {
    const account = trust.accountOf(from);
    account.bytes_in += payload.len;
    const packet = wire.parse(payload) catch return;
    switch (packet.body) {
        .hello => |hello| for (account.cookies) |cookie| {
            if (!std.mem.allEqual(u8, &cookie, 0) and std.mem.eql(u8, &cookie, &hello.cookie)) account.is_trusted = true;
        },
        else => {},
    }
}

pub fn leaves(trust: *Trust, to: base.Endpoint, payload: []const u8) !void {
    const account = trust.accountOf(to);
    account.bytes_out += payload.len;
    const packet = wire.parse(payload) catch return trust.violate("the edge sent a packet that it would refuse");
    switch (packet.body) {
        .cookie => |cookie| {
            account.cookies[account.cookies_next % 4] = cookie.cookie;
            account.cookies_next +%= 1;
        },
        .no_session => {},
        else => if (!account.is_trusted) trust.violate("an address without a cookie got more than a cookie"),
    }
    if (!account.is_trusted and account.bytes_out > account.bytes_in)
        trust.violate("more bytes went out to an address without a cookie than came in");
}

pub fn opened(trust: *Trust, boot_id: base.Uuid, nonce: [16]u8) !void {
    const found = try trust.tokens.getOrPut(trust.gpa, boot_id.bytes);
    if (!found.found_existing) found.value_ptr.* = nonce;
    if (!std.mem.eql(u8, found.value_ptr, &nonce)) trust.violate("a token was used twice");
}

fn violate(trust: *Trust, text: []const u8) void {
    if (trust.violation == null) trust.violation = text;
}

fn accountOf(trust: *Trust, endpoint: base.Endpoint) *Account {
    const found = trust.addresses.getOrPut(trust.gpa, endpoint.toInt()) catch @panic("out of memory");
    if (!found.found_existing) found.value_ptr.* = .{};
    return found.value_ptr;
}
