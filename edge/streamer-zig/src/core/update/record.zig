//! What an edge remembers of the release that it was given last, across its own programs: one
//! program writes it, another reads it. A file of the data directory, as JSON.

const std = @import("std");

pub const Record = @This();

/// The release.
version: []const u8,
/// Counts how often the control plane has ordered it: a failed one is tried again only by a higher
/// number.
attempt: u64,
/// The version of the installed program. Another one there was put by a person, and replaces the
/// release.
installed: []const u8,
outcome: Outcome,
cause: ?Cause = null,

pub const Outcome = enum { probation, healthy, failed };

/// Why a release does not run here.
pub const Cause = enum {
    /// Ones of fetching it, which is tried again.
    no_root,
    no_time,
    no_answer,
    metadata_refused,
    metadata_expired,
    not_listed,
    target_refused,
    too_slow,
    no_space,
    /// Ones of the program, which end the attempt.
    unfit,
    ended,
    cannot_start,
    no_control_plane,

    pub fn sentence(cause: Cause) []const u8 {
        return switch (cause) {
            .no_root => "this edge trusts no release key; run bootfarm-edge enrol --rejoin",
            .no_time => "the control plane does not sign its time",
            .no_answer => "the control plane does not answer",
            .metadata_refused => "its metadata are not what this edge trusts",
            .metadata_expired => "its metadata have expired; sign new ones",
            .not_listed => "the release metadata do not list it for this processor",
            .target_refused => "the program is not the one that was released",
            .too_slow => "the download is too slow",
            .no_space => "the data directory cannot keep it; free some space",
            .unfit => "the program does not start on this machine, or is another version",
            .ended => "the program ended while it was on probation",
            .cannot_start => "the program could not start to serve",
            .no_control_plane => "the program did not reach the control plane",
        };
    }
};

/// What a service manager's start of the installed program continues as.
pub const Choice = enum {
    /// A person has installed another program, which counts: the release is forgotten.
    forget,
    release,
    /// The program before the release: a program on probation does not end, but this one did, or
    /// its machine.
    leave,
};

/// `installed`: the version of the program that was started.
pub fn choose(record: *const Record, installed: []const u8) Choice {
    if (!std.mem.eql(u8, record.installed, installed)) return .forget;
    return if (record.outcome == .probation) .leave else .release;
}

/// The release does not run here.
pub fn fail(record: *Record, cause: Cause) void {
    record.outcome = .failed;
    record.cause = cause;
}

/// The running program has passed its probation. That is not the release where the system did not
/// start it, and the program before it continued.
pub fn pass(record: *Record, running: []const u8) void {
    if (!std.mem.eql(u8, record.version, running)) return record.fail(.cannot_start);
    record.outcome = .healthy;
    record.cause = null;
}

pub const size_max = 1024;

pub fn write(record: *const Record, buffer: *[size_max]u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    std.json.Stringify.value(record.*, .{ .emit_null_optional_fields = false }, &writer) catch
        unreachable;
    return writer.buffered();
}

/// Returns null for what is no record. The result points into `text` or `arena`.
pub fn parse(arena: std.mem.Allocator, text: []const u8) ?Record {
    const record = std.json.parseFromSliceLeaky(
        Record,
        arena,
        text,
        .{ .ignore_unknown_fields = true },
    ) catch return null;
    for ([_][]const u8{ record.version, record.installed }) |version|
        if (!isVersion(version)) return null;
    if ((record.outcome == .failed) != (record.cause != null)) return null;
    return record;
}

/// The longest that is released, and in a path.
pub const version_size_max = 64;

pub fn isVersion(text: []const u8) bool {
    if (text.len > version_size_max) return false;
    for (text) |byte| switch (byte) {
        '0'...'9', 'a'...'z', 'A'...'Z', '.', '+', '-' => {},
        else => return false,
    };
    _ = std.SemanticVersion.parse(text) catch return false;
    return true;
}

const testing = std.testing;

test "a record survives being written, and what is none is refused" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const record: Record = .{
        .version = "0.2.0-rc.1",
        .attempt = std.math.maxInt(u53),
        .installed = "0.1.0",
        .outcome = .failed,
        .cause = .no_control_plane,
    };
    var buffer: [size_max]u8 = undefined;
    try testing.expectEqualDeep(record, parse(arena, record.write(&buffer)).?);
    for ([_][]const u8{
        "",
        "{}",
        \\{"version":"../x","attempt":1,"installed":"0.1.0","outcome":"healthy"}
        ,
        \\{"version":"1.0.0","attempt":1,"installed":"0.1.0","outcome":"other"}
        ,
        \\{"version":"1.0.0","attempt":1,"installed":"0.1.0","outcome":"failed"}
        ,
    }) |text| try testing.expectEqual(null, parse(arena, text));
}

test "a release runs at each start until a person installs another program, or it has ended" {
    var record: Record =
        .{ .version = "0.2.0", .attempt = 1, .installed = "0.1.0", .outcome = .probation };
    try testing.expectEqual(.leave, record.choose("0.1.0"));
    try testing.expectEqual(.forget, record.choose("0.1.1"));
    record.pass("0.2.0");
    try testing.expectEqual(Outcome.healthy, record.outcome);
    try testing.expectEqual(.release, record.choose("0.1.0"));
    try testing.expectEqual(.forget, record.choose("0.2.0"));
    record.fail(.ended);
    try testing.expectEqual(.release, record.choose("0.1.0"));
    record.outcome = .probation;
    record.pass("0.1.0");
    try testing.expectEqual(Cause.cannot_start, record.cause.?);
}

test "a version that could lead elsewhere is none" {
    for ([_][]const u8{ "0.1.0", "10.0.0-rc.1+x" }) |text| try testing.expect(isVersion(text));
    for ([_][]const u8{ "", "1", "1.0.0/../..", "1.0.0-a/b", "1.0.0 ", "1.0.0\n" }) |text|
        try testing.expect(!isVersion(text));
}
