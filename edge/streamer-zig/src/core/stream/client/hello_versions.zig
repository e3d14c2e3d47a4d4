//! The version of a HELLO at the device (packages/proto/STREAM.md, "Hello", Versions), and the
//! signature that version 3 adds to it. A device asks an edge that it does not know in both
//! versions, and continues in the newest that both know.

const std = @import("std");
const wire = @import("wire").stream;
const device_signature = @import("../device_signature.zig");
const secrets = @import("../secrets.zig");
const step = @import("step.zig");
const stream_seal = @import("../seal.zig");
const StreamClient = @import("client.zig");
const assert = std.debug.assert;

/// HELLOs with a cookie and no answer after which the edge is asked for its version again: another
/// program may have taken its address.
const unanswered_max = 5;

/// From here on HELLO has no cookie, and goes in each version until the edge's is known.
pub fn begin(client: *StreamClient) void {
    const greeting = &client.greeting;
    greeting.cookie = @splat(0);
    greeting.hello = of(client, client.options.version_max);
    greeting.is_settled = client.options.version_max == .v2;
    greeting.is_older_due = false;
}

/// Returns the HELLO in this version, proven; with zeros for its signature.
pub fn of(client: *const StreamClient, version: wire.Version) wire.Hello {
    const greeting = &client.greeting;
    var hello = greeting.hello;
    const has_identity = version != .v2 and greeting.kind == .token;
    hello.version = version;
    hello.cookie = greeting.cookie;
    hello.codecs = if (version == .v2) 0 else client.options.codecs;
    hello.device_key = @splat(0);
    hello.signature = @splat(0);
    if (has_identity) hello.device_key = client.identity.device_key orelse @splat(0);
    hello.proof = stream_seal.helloProof(secretOf(client, greeting.kind), &hello);
    return hello;
}

/// The session's edge knows version 3: it is not asked in version 2 unless it is silent.
fn knowsNewest(client: *const StreamClient) bool {
    const session = if (client.session) |*session| session else return false;
    return session.version == client.options.version_max and client.failover.isAtOwn();
}

/// An edge that is silent behind its cookie is asked for its version again.
pub fn checkSilence(client: *StreamClient) void {
    const greeting = &client.greeting;
    if (client.options.version_max == .v2 or greeting.sent_count < unanswered_max) return;
    if (std.mem.allEqual(u8, &greeting.cookie, 0)) return;
    begin(client);
    greeting.sent_count = 0;
}

/// Tells whether the HELLO that was just sent is to follow in version 2.
pub fn isOlderDue(client: *const StreamClient) bool {
    const greeting = &client.greeting;
    return !greeting.is_settled and (greeting.sent_count > 1 or !knowsNewest(client));
}

/// The edge's version is known, and its cookie has arrived.
pub fn settle(client: *StreamClient, version: wire.Version) void {
    const greeting = &client.greeting;
    greeting.is_settled = true;
    greeting.is_older_due = false;
    greeting.hello = of(client, version);
    greeting.is_signing = !std.mem.allEqual(u8, &greeting.hello.device_key, 0);
    if (greeting.is_signing) client.pending_events.sign =
        device_signature.digestOf(&device_signature.transcriptOf(&greeting.hello));
}

pub fn sign(client: *StreamClient, now_us: u64, signature: ?wire.DeviceSignature) void {
    const greeting = &client.greeting;
    // Its HELLO may have got another cookie, or be over.
    if (client.state != .greeting or !greeting.is_signing) return;
    if (client.pending_events.sign != null) return;
    greeting.is_signing = false;
    greeting.hello.signature = signature orelse @splat(0);
    if (signature == null) greeting.hello.device_key = @splat(0);
    greeting.hello.proof =
        stream_seal.helloProof(secretOf(client, greeting.kind), &greeting.hello);
    greeting.due_at_us = now_us;
    assert(greeting.sent_count == 0);
}

/// Returns the newest version that both know, as far as this COOKIE says.
pub fn ofCookie(
    client: *const StreamClient,
    version: wire.Version,
    cookie: *const [32]u8,
) wire.Version {
    if (client.options.version_max == .v2) return .v2;
    return if (version != .v2 or secrets.isMarked(cookie)) .v3 else .v2;
}

pub fn secretOf(client: *const StreamClient, kind: wire.HelloKind) []const u8 {
    return switch (kind) {
        .token => &client.identity.token,
        .resumption, .ticket => &client.session.?.resume_secret,
    };
}

test {
    _ = @import("hello_versions_test.zig");
}
