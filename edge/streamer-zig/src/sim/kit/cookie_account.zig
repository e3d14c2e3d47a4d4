//! The addresses that have shown that they receive the edge's packets: on the wire, an address sent
//! back a cookie that went to it. Before that the edge may send it no more bytes than it sent.

const std = @import("std");
const base = @import("base");
const stream = @import("wire").stream;
const Invariants = @import("../site/invariants.zig");
const Endpoint = base.Endpoint;

pub const CookieAccount = @This();

const entries_max = 1024;
const hellos_max = 128;

/// Rings. What is evicted has to be shown again: the check is stricter than the edge for very old
/// sessions.
issued: [entries_max]Issued = @splat(.{ .to = 0, .cookie = @splat(0) }),
issued_count: u32 = 0,
proved: [entries_max]u48 = @splat(0),
proved_count: u32 = 0,
/// The request that is being answered.
from: Endpoint = .{ .ip = .zero, .port = 0 },
request_size: usize = 0,
answered_size: usize = 0,
/// The HELLOs that came last: the session of one begins later where a thread opens its layer.
hellos: [hellos_max]stream.Hello = undefined,
hello_count: u32 = 0,

const Issued = struct { to: u48, cookie: [32]u8 };

/// A datagram arrives at the edge's stream port.
pub fn noteRequest(account: *CookieAccount, from: Endpoint, bytes: []const u8) void {
    account.from = from;
    account.request_size = bytes.len;
    account.answered_size = 0;
    const packet = stream.parse(bytes) catch return;
    if (packet.body != .hello) return;
    account.hellos[account.hello_count % hellos_max] = packet.body.hello;
    account.hello_count += 1;
    const key = from.toInt();
    for (&account.issued) |*issued| {
        if (issued.to != key) continue;
        if (!std.mem.eql(u8, &issued.cookie, &packet.body.hello.cookie)) continue;
        if (account.hasProved(from)) return;
        account.proved[account.proved_count % entries_max] = key;
        account.proved_count += 1;
        return;
    }
}

/// The edge sends this before it handles another datagram.
pub fn noteAnswer(
    account: *CookieAccount,
    invariants: *Invariants,
    to: Endpoint,
    bytes: []const u8,
) void {
    // Sealed packets are opaque, except the type of a WELCOME.
    if (bytes.len > 1 and bytes[1] == @backingInt(stream.Type.welcome)) {
        if (account.helloOf(bytes)) |hello| invariants.noteWelcome(hello);
    } else if (stream.parse(bytes)) |packet| {
        if (packet.body == .cookie) {
            account.issued[account.issued_count % entries_max] =
                .{ .to = to.toInt(), .cookie = packet.body.cookie.cookie };
            account.issued_count += 1;
        }
    } else |_| {}
    account.answered_size += bytes.len;
    if (account.hasProved(to)) return;
    if (!to.eql(account.from) or account.answered_size > account.request_size)
        invariants.violate(
            .no_bytes_before_cookie,
            "{d} bytes for {d} go to {f}, which has shown no cookie",
            .{ account.answered_size, account.request_size, to },
        );
}

/// Returns the latest HELLO with the nonce that this WELCOME has in the clear.
fn helloOf(account: *const CookieAccount, welcome: []const u8) ?*const stream.Hello {
    if (welcome.len < stream.welcome_size_known) return null;
    const nonce = welcome[stream.header_size..][0..16];
    for (1..@min(account.hello_count, hellos_max) + 1) |back| {
        const hello = &account.hellos[(account.hello_count - back) % hellos_max];
        if (std.mem.eql(u8, &hello.client_nonce, nonce)) return hello;
    }
    return null;
}

fn hasProved(account: *const CookieAccount, endpoint: Endpoint) bool {
    return std.mem.findScalar(u48, &account.proved, endpoint.toInt()) != null;
}

const testing = std.testing;

test "an address that has not sent back its cookie gets no more than it sent" {
    var account: CookieAccount = .{};
    var invariants: Invariants = .{};
    const device: Endpoint = .{ .ip = .init(10, 0, 0, 1), .port = 9 };
    var hello: stream.Hello = .{
        .client_nonce = @splat(1),
        .kind = .token,
        .boot_id = @splat(2),
        .ciphers = .{ .chacha20_poly1305 = true },
        .client_public = @splat(0),
        .proof = @splat(0),
        .packet_size_max = stream.packet_size_ethernet,
    };
    const cookie: stream.Cookie = .{ .client_nonce = @splat(1), .cookie = @splat(5) };
    var request: [stream.packet_size_max]u8 = undefined;
    var answer: [stream.packet_size_max]u8 = undefined;
    account.noteRequest(device, stream.emit(.{ .body = .{ .hello = hello } }, &request));
    const cookie_packet = stream.emit(.{ .body = .{ .cookie = cookie } }, &answer);
    account.noteAnswer(&invariants, device, cookie_packet);
    try testing.expectEqual(null, invariants.violation);
    hello.cookie = cookie.cookie;
    account.noteRequest(device, stream.emit(.{ .body = .{ .hello = hello } }, &request));
    account.noteAnswer(&invariants, device, answer[0..1000]);
    try testing.expectEqual(null, invariants.violation);
    account.noteRequest(.{ .ip = .init(10, 0, 0, 2), .port = 9 }, request[0..40]);
    account.noteAnswer(&invariants, .{ .ip = .init(10, 0, 0, 2), .port = 9 }, answer[0..41]);
    try testing.expectEqual(.no_bytes_before_cookie, invariants.violation.?.check);
}
