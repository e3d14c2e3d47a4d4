//! The client of The Update Framework (specification 1.0, section 5): decides which metadata file
//! is wanted next, whether to trust what came, and what an edge must remember. It reads no file, no
//! socket and no clock. `now_s` is the time at which the update began, as the control plane signed
//! it (`signed_time.zig`): an edge's clock may be wrong by years.
//!
//! An update that is refused leaves in `stored` what was right until then, so that the next one
//! can succeed.

const std = @import("std");
const metadata = @import("metadata.zig");
const assert = std.debug.assert;
const Allocator = std.mem.Allocator;
const Document = metadata.Document;
const Role = metadata.Role;
const Root = metadata.Root;
const Snapshot = metadata.Snapshot;
const Targets = metadata.Targets;
const Timestamp = metadata.Timestamp;

/// Bytes that `arena` may need: the largest documents of every role, parsed.
pub const memory_max = 32 << 20;
/// Root documents of one update; the next update continues the chain.
pub const roots_max = 256;

pub const Refusal = metadata.Error || error{
    /// Too few keys of the role have signed.
    Unsigned,
    /// A version is lower than one that was trusted before, or a listed file has gone.
    RolledBack,
    /// Nothing newer came, and this is too old to be trusted.
    Expired,
    /// Not the file that the trusted metadata describe.
    Mismatch,
    TooLarge,
    /// The repository lacks a file that the trusted metadata name.
    Missing,
};

/// The documents that an edge keeps between updates. All of them change together: a root that
/// rotates keys takes the versions that the old keys signed with it.
pub const Stored = struct {
    root: []const u8,
    timestamp: ?[]const u8 = null,
    snapshot: ?[]const u8 = null,
    targets: ?[]const u8 = null,
};

pub const request_path_size_max = metadata.request_path_size_max;
pub const root_size_max = metadata.sizeMax(.root);
pub const name_size_max = "9007199254740991.timestamp.json".len;

pub const Request = struct {
    /// Below the repository's `metadata/`.
    name: []const u8,
    /// Bytes; more must not be read.
    size_max: u64,
};

const Step = enum { root, timestamp, snapshot, targets, done, refused };

pub const Client = @This();

/// Holds all that was parsed and accepted; it lives as long as the client.
arena: Allocator,
now_s: u64,
stored: Stored,
step: Step = .root,
root: Root,
/// The root of the beginning, against which keys are rotated.
first_root: Root,
timestamp: ?Timestamp = null,
snapshot: ?Snapshot = null,
targets: ?Targets = null,
root_count: u32 = 0,

/// Begins an update with what earlier ones have left, or with the root of the installation
/// (sections 5.1 and 5.2). A root that is not valid by itself is refused.
pub fn begin(arena: Allocator, stored: Stored, now_s: u64) Refusal!Client {
    const document = try openWithin(arena, stored.root, .root);
    const root: Root = try .parse(arena, &document);
    if (!root.isSigned(.root, &document)) return error.Unsigned;
    return .{
        .arena = arena,
        .now_s = now_s,
        .stored = stored,
        .root = root,
        .first_root = root,
    };
}

/// Returns the file that is wanted next; null when the update is over.
pub fn request(client: *const Client, buffer: *[name_size_max]u8) ?Request {
    const role: Role = switch (client.step) {
        .root => .root,
        .timestamp => .timestamp,
        .snapshot => .snapshot,
        .targets => .targets,
        .done, .refused => return null,
    };
    const version: ?u64 = switch (role) {
        .root => client.root.version + 1,
        .timestamp => null,
        .snapshot => client.timestamp.?.snapshot.version,
        .targets => client.snapshot.?.targets.version,
    };
    const is_numbered = role == .root or client.root.is_consistent;
    const name = if (version != null and is_numbered)
        std.mem.print(buffer, "{d}.{t}.json", .{ version.?, role }) catch unreachable
    else
        std.mem.print(buffer, "{t}.json", .{role}) catch unreachable;
    return .{ .name = name, .size_max = switch (role) {
        .root, .timestamp => metadata.sizeMax(role),
        .snapshot => client.timestamp.?.snapshot.sizeLimit(.snapshot),
        .targets => client.snapshot.?.targets.sizeLimit(.targets),
    } };
}

/// Takes the requested file; null: the repository does not have it. After a refusal the update is
/// over.
pub fn receive(client: *Client, bytes: ?[]const u8) Refusal!void {
    assert(client.step != .done);
    assert(client.step != .refused);
    const step = client.step;
    errdefer client.step = .refused;
    const text = bytes orelse return switch (step) {
        // There is no newer root.
        .root => client.endRoots(),
        else => error.Missing,
    };
    try switch (step) {
        .root => client.receiveRoot(text),
        .timestamp => client.receiveTimestamp(text),
        .snapshot => client.receiveSnapshot(text),
        .targets => client.receiveTargets(text),
        .done, .refused => unreachable,
    };
}

/// Returns the description of a target; null: there is no such target. Only after an update that
/// is done.
pub fn target(client: *const Client, path: []const u8) ?*const metadata.Target {
    assert(client.step == .done);
    return client.targets.?.find(path);
}

/// Section 5.3.3 to 5.3.9.
fn receiveRoot(client: *Client, text: []const u8) Refusal!void {
    const document = try openWithin(client.arena, text, .root);
    const root: Root = try .parse(client.arena, &document);
    if (!client.root.isSigned(.root, &document)) return error.Unsigned;
    if (!root.isSigned(.root, &document)) return error.Unsigned;
    if (root.version != client.root.version + 1) return error.RolledBack;
    client.root = root;
    client.stored.root = try client.arena.dupe(u8, text);
    if (root.isRotated(.timestamp, &client.first_root) or
        root.isRotated(.snapshot, &client.first_root)) client.forgetVersions();
    client.root_count += 1;
    assert(client.root_count <= roots_max);
    if (client.root_count == roots_max) try client.endRoots();
}

/// Section 5.3.11: versions that a thief of the old keys may have set far ahead.
fn forgetVersions(client: *Client) void {
    assert(client.step == .root);
    client.stored.timestamp = null;
    client.stored.snapshot = null;
}

/// Section 5.3.10 to 5.3.12, and what earlier updates left.
fn endRoots(client: *Client) Refusal!void {
    assert(client.step == .root);
    try client.expectFresh(client.root.expires_s);
    client.timestamp = client.storedTimestamp() catch null;
    if (client.timestamp == null) client.stored.timestamp = null;
    client.snapshot = client.storedSnapshot() catch null;
    if (client.snapshot == null) client.stored.snapshot = null;
    client.step = .timestamp;
}

fn storedTimestamp(client: *const Client) Refusal!?Timestamp {
    const text = client.stored.timestamp orelse return null;
    return try .parse(&try client.openSigned(text, .timestamp));
}

fn storedSnapshot(client: *const Client) Refusal!?Snapshot {
    const text = client.stored.snapshot orelse return null;
    return try .parse(client.arena, &try client.openSigned(text, .snapshot));
}

/// Section 5.4. A timestamp of the trusted version is dropped, and the trusted one still counts:
/// an earlier update may have ended after it.
fn receiveTimestamp(client: *Client, text: []const u8) Refusal!void {
    const document = try client.openSigned(text, .timestamp);
    const timestamp: Timestamp = try .parse(&document);
    const is_same = if (client.timestamp) |*trusted| is_same: {
        if (timestamp.version < trusted.version) return error.RolledBack;
        if (timestamp.version == trusted.version) break :is_same true;
        if (timestamp.snapshot.version < trusted.snapshot.version) return error.RolledBack;
        break :is_same false;
    } else false;
    if (is_same) return client.endTimestamp();
    try client.expectFresh(timestamp.expires_s);
    client.timestamp = timestamp;
    client.stored.timestamp = try client.arena.dupe(u8, text);
    try client.endTimestamp();
}

fn endTimestamp(client: *Client) Refusal!void {
    assert(client.step == .timestamp);
    const timestamp = &client.timestamp.?;
    try client.expectFresh(timestamp.expires_s);
    client.step = .snapshot;
    const snapshot = if (client.snapshot) |*snapshot| snapshot else return;
    if (snapshot.version != timestamp.snapshot.version) return;
    if (!timestamp.snapshot.matches(client.stored.snapshot.?)) return;
    try client.endSnapshot();
}

/// Section 5.5.
fn receiveSnapshot(client: *Client, text: []const u8) Refusal!void {
    const timestamp = &client.timestamp.?;
    if (text.len > timestamp.snapshot.sizeLimit(.snapshot)) return error.TooLarge;
    if (!timestamp.snapshot.matches(text)) return error.Mismatch;
    const document = try client.openSigned(text, .snapshot);
    const snapshot: Snapshot = try .parse(client.arena, &document);
    if (snapshot.version != timestamp.snapshot.version) return error.Mismatch;
    if (client.snapshot) |*trusted| if (snapshot.rollsBack(trusted)) return error.RolledBack;
    try client.expectFresh(snapshot.expires_s);
    client.snapshot = snapshot;
    client.stored.snapshot = try client.arena.dupe(u8, text);
    try client.endSnapshot();
}

fn endSnapshot(client: *Client) Refusal!void {
    assert(client.step == .snapshot);
    const snapshot = &client.snapshot.?;
    try client.expectFresh(snapshot.expires_s);
    client.step = .targets;
    const text = client.stored.targets orelse return;
    client.receiveTargets(text) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        // Another is wanted.
        else => {},
    };
}

/// Section 5.6.1 to 5.6.6.
fn receiveTargets(client: *Client, text: []const u8) Refusal!void {
    assert(client.step == .targets);
    const described = &client.snapshot.?.targets;
    if (text.len > described.sizeLimit(.targets)) return error.TooLarge;
    if (!described.matches(text)) return error.Mismatch;
    const document = try client.openSigned(text, .targets);
    const targets: Targets = try .parse(client.arena, &document);
    if (targets.version != described.version) return error.Mismatch;
    try client.expectFresh(targets.expires_s);
    client.targets = targets;
    client.stored.targets = try client.arena.dupe(u8, text);
    client.step = .done;
}

/// The freeze attack: an expiration must lie after the time at which the update began.
fn expectFresh(client: *const Client, expires_s: u64) error{Expired}!void {
    if (expires_s <= client.now_s) return error.Expired;
}

fn openSigned(client: *const Client, text: []const u8, role: Role) Refusal!Document {
    const document = try openWithin(client.arena, text, role);
    if (!client.root.isSigned(role, &document)) return error.Unsigned;
    return document;
}

fn openWithin(arena: Allocator, text: []const u8, role: Role) Refusal!Document {
    if (text.len > metadata.sizeMax(role)) return error.TooLarge;
    return metadata.open(arena, text, role);
}

/// What an operator reads.
pub fn sentence(refusal: Refusal) []const u8 {
    return switch (refusal) {
        error.Malformed => "it is not valid TUF metadata",
        error.Unsupported => "it needs a newer edge",
        error.WrongRole => "it is metadata of another role",
        error.Unsigned => "too few keys of its role have signed it",
        error.RolledBack => "it is older than what this edge has seen",
        error.Expired => "it has expired; the control plane must sign new metadata",
        error.Mismatch => "it is not the file that the release metadata describe",
        error.TooLarge => "it is larger than the release metadata allow",
        error.Missing => "the control plane does not have it",
        error.OutOfMemory => "there is not enough memory",
    };
}

test {
    _ = @import("client_test.zig");
}
