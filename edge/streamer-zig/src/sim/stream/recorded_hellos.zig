//! The attacker who has recorded HELLOs of devices, and shows them from an address of its own, with
//! the cookie of that address: no session may move to it or end.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const link = @import("link.zig");
const Server = link.Server;
const Endpoint = base.Endpoint;

pub const RecordedHellos = @This();

/// A ring: those that have opened sessions of this process.
hellos: [capacity]wire.Hello = undefined,
count: u64 = 0,

const capacity = 16;

/// The edge has handled a HELLO.
pub fn note(recorded: *RecordedHellos, server: *const Server, claim: *const Server.Claim) void {
    const session = server.sessionOf(claim.boot_id) orelse return;
    if (!std.mem.eql(u8, &session.client_nonce, &claim.hello.client_nonce)) return;
    recorded.hellos[recorded.count % capacity] = claim.hello;
    recorded.count += 1;
}

/// Shows one of them from `attacker` to a `StreamEdge`.
pub fn replay(recorded: *const RecordedHellos, edge: anytype, attacker: Endpoint) void {
    const process = edge.running() orelse return;
    if (recorded.count == 0) return;
    const server = &process.stream.server;
    const index = edge.prng.below(@min(recorded.count, capacity));
    var hello = recorded.hellos[@intCast(index)];
    const boot_id: base.Uuid = .fromBytes(hello.boot_id);
    const session = server.sessionOf(boot_id) orelse return;
    // A device that has had no WELCOME may itself show it from another address.
    const is_current = std.mem.eql(u8, &session.client_nonce, &hello.client_nonce);
    if (is_current and (hello.version == .v2 and !session.isHeard())) return;
    const before = session.id;
    const own_cookie = hello.cookie;
    hello.cookie = cookieOf(server, edge.network.now_us, attacker, hello) orelse return;
    edge.addresses.of(attacker).was_reached = true;
    var buffer: [wire.hello_size_max]u8 = undefined;
    const bytes = wire.emit(.{ .version = hello.version, .body = .{ .hello = hello } }, &buffer);
    switch (edge.mutant) {
        // The proof leaves out the cookie: that of the device holds, too.
        .proof_without_cookie => if (hello.version != .v2) {
            hello.cookie = own_cookie;
            forget(server);
            process.stream.admit(
                &.{ .from = attacker, .hello = hello, .boot_id = boot_id },
                &.{ .from = attacker, .bytes = bytes, .at_us = edge.network.now_us },
                edge.network.now_us,
            );
        } else edge.receive(attacker, bytes),
        .recorded_hello_forgotten => {
            forget(server);
            edge.receive(attacker, bytes);
        },
        else => edge.receive(attacker, bytes),
    }
    const after = server.sessionOf(boot_id);
    if (after == null or after.?.id != before or after.?.from.eql(attacker))
        edge.invariants.violate(
            .recorded_hello_does_nothing,
            "a recorded HELLO of version {d} moves or ends a session",
            .{@backingInt(hello.version)},
        );
}

fn cookieOf(server: *Server, now_us: u64, from: Endpoint, of: wire.Hello) ?[32]u8 {
    var hello = of;
    hello.cookie = @splat(0);
    var buffer: [wire.hello_size_max]u8 = undefined;
    const bytes = wire.emit(.{ .version = hello.version, .body = .{ .hello = hello } }, &buffer);
    var reply: Server.ReplyBuffer = undefined;
    const step = server.receive(now_us, from, bytes, &reply);
    if (step != .reply) return null;
    return (wire.parse(step.reply) catch return null).body.cookie.cookie;
}

fn forget(server: *Server) void {
    @memset(server.hello_memory.tags, 0);
}
