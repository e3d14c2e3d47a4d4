//! Checks that the control plane is reachable and knows this edge, and that the clocks agree. The
//! request changes nothing there: it asks for a desired state that does not exist yet.

const std = @import("std");
const Io = std.Io;
const base = @import("base");
const core = @import("core");
const host = @import("host");
const Findings = @import("findings.zig");
const linux = std.os.linux;

const timeout_ms = 10_000;
/// Certificates tolerate this offset, and so do people who read logs.
const clock_offset_s_max = 60;
/// This program is younger than that.
const year_min = 2025;
const year_max = 2100;

pub const EnrolledEdge = struct {
    identity: host.data_dir.Identity,
    key: base.Ed25519.KeyPair,
    epoch: u64,
};

/// Reads the identity in the data directory without taking the directory from a running edge.
pub fn checkIdentity(findings: *Findings, path: []const u8) error{OutOfMemory}!?EnrolledEdge {
    const identity = try readIdentity(findings, path) orelse return null;
    const seed = try readSecret(findings, path, "edge.key") orelse
        return damaged(findings, path, "edge.key");
    const key = base.Ed25519.KeyPair.generateDeterministic(seed) catch
        return damaged(findings, path, "edge.key");
    const epoch_text = try readIn(findings, path, "epoch") orelse "0";
    const epoch = std.fmt.parseInt(u53, std.mem.trim(u8, epoch_text, " \n"), 10) catch
        return damaged(findings, path, "epoch");
    const site_name: base.UntrustedText = .init(identity.siteName);
    try findings.ok(.identity, "This is edge {f} of site {f}.", .{ identity.edgeId, site_name });
    return .{ .identity = identity, .key = key, .epoch = epoch };
}

pub fn readIdentity(
    findings: *Findings,
    path: []const u8,
) error{OutOfMemory}!?host.data_dir.Identity {
    const text = try readIn(findings, path, "identity.json") orelse {
        try findings.report(
            .problem,
            .identity,
            try findings.print(
                "{s} is not the data directory of an enrolled edge, or cannot be read by this user.",
                .{path},
            ),
            "bootfarm-edge enrol --url URL --token-file F --data DIR; the dashboard creates the token.",
        );
        return null;
    };
    return std.json.parseFromSliceLeaky(
        host.data_dir.Identity,
        findings.arena,
        text,
        .{ .ignore_unknown_fields = true },
    ) catch {
        _ = try damaged(findings, path, "identity.json");
        return null;
    };
}

fn damaged(
    findings: *Findings,
    path: []const u8,
    name: []const u8,
) error{OutOfMemory}!?EnrolledEdge {
    try findings.report(
        .problem,
        .identity,
        try findings.print("{s}/{s} is damaged or cannot be read by this user.", .{ path, name }),
        "Run the doctor as the edge's user, or enrol this edge again into another data directory.",
    );
    return null;
}

/// Returns the last state that the control plane sent, if it can be read.
pub fn keptState(
    findings: *Findings,
    path: []const u8,
    identity: *const host.data_dir.Identity,
) error{OutOfMemory}!?core.uplink.desired_state.DesiredState {
    const text = try readIn(findings, path, "state.json") orelse {
        try findings.report(
            .warning,
            .store,
            "The control plane has not sent a desired state yet.",
            "Start the edge once while the control plane is reachable.",
        );
        return null;
    };
    const signing_key = core.uplink.key_text.parse(identity.signingKey) catch return null;
    return core.uplink.desired_state.accept(findings.arena, text, .{
        .edge_id = identity.edgeId,
        .signing_key = signing_key,
        .organization_id = identity.organizationId,
        .seal_secret = try readSecret(findings, path, "seal.key"),
    }) catch |refusal| switch (refusal) {
        error.OutOfMemory => error.OutOfMemory,
        else => |other| {
            try findings.report(
                .problem,
                .store,
                try findings.print("The desired state on disk is refused: {s}.", .{
                    core.uplink.desired_state.sentence(other),
                }),
                try findings.print(
                    "Remove {s}/state.json; the control plane sends it again.",
                    .{path},
                ),
            );
            return null;
        },
    };
}

/// Returns null if there is none, or if it is damaged.
fn readSecret(findings: *Findings, path: []const u8, name: []const u8) error{OutOfMemory}!?[32]u8 {
    const text = try readIn(findings, path, name) orelse return null;
    const hex = std.mem.trim(u8, text, " \n");
    var secret: [32]u8 = undefined;
    if (hex.len != 2 * secret.len) return null;
    _ = std.fmt.hexToBytes(&secret, hex) catch return null;
    return secret;
}

fn readIn(findings: *Findings, path: []const u8, name: []const u8) error{OutOfMemory}!?[]u8 {
    const whole = try std.fmt.allocPrintSentinel(findings.arena, "{s}/{s}", .{ path, name }, 0);
    const buffer = try findings.arena.alloc(u8, core.uplink.desired_state.envelope_size_max);
    return host.sys.readFile(whole, buffer) catch null;
}

pub fn checkClock(findings: *Findings) error{OutOfMemory}!void {
    const year = std.time.epoch.EpochSeconds.getEpochDay(
        .{ .secs = host.sys.unixMs() / 1000 },
    ).calculateYearDay().year;
    if (year >= year_min and year <= year_max) return;
    try findings.report(
        .problem,
        .clock,
        try findings.print("This machine's clock shows the year {d}.", .{year}),
        "Set it (timedatectl set-ntp true): HTTPS rejects certificates when the clock is wrong.",
    );
}

/// Asks for a state that does not exist yet; each step that fails has its own finding.
pub fn checkUplink(
    findings: *Findings,
    io: Io,
    known: *const EnrolledEdge,
    transport: host.Transport.Settings,
) error{OutOfMemory}!void {
    var counter: std.atomic.Value(u64) = .init(0);
    var client: host.UplinkClient = .init(std.heap.smp_allocator, io, .{
        .transport = transport,
        .key = known.key,
        .edge_id = known.identity.edgeId,
        .epoch = known.epoch,
        .counter = &counter,
    });
    defer client.deinit();
    // Higher than any state: there is no news, and the answer comes at once.
    const path = "/edge/v1/state?after=900719925474099.0&waitMs=0";
    const url = known.identity.url;
    var buffer: [4096]u8 = undefined;
    const answer = client.request(.GET, path, "", timeout_ms, &buffer) catch {
        const failure = client.failure();
        return findings.report(
            .problem,
            .uplink,
            try findings.print("{s} cannot be reached: {s}.", .{ url, failure.sentence() }),
            failure.remedy(),
        );
    };
    const problem = core.uplink.message.parse(
        core.uplink.message.Problem,
        findings.arena,
        answer.body,
    ) catch core.uplink.message.Problem{};
    try reportAnswer(findings, url, .{
        .status = answer.status,
        .code = .parse(problem.code),
        .date_s = if (answer.date) |*date| parseDate(date) else null,
    });
}

const Answer = struct { status: u16, code: core.uplink.sender.Code, date_s: ?u64 };

fn reportAnswer(
    findings: *Findings,
    url: []const u8,
    answer: Answer,
) error{OutOfMemory}!void {
    if (answer.date_s) |theirs_s| try addClock(findings, theirs_s);
    switch (answer.status) {
        200...299 => try findings.ok(.uplink, "{s} answers and knows this edge.", .{url}),
        else => switch (answer.code) {
            .edge_revoked, .edge_unknown, .signature_invalid => try findings.report(
                .problem,
                .uplink,
                try findings.print("{s} answers, but does not accept this edge: {t}.", .{
                    url, answer.code,
                }),
                "Enrol this machine again with a new token, into another data directory.",
            ),
            .edge_too_old, .edge_too_new => try findings.report(
                .problem,
                .uplink,
                try findings.print("{s} does not support the version of this edge: {t}.", .{
                    url, answer.code,
                }),
                "Update the older of the two; machines keep booting.",
            ),
            .stale_epoch => try findings.report(
                .problem,
                .uplink,
                try findings.print(
                    "{s} has seen later starts of this edge than the data directory has recorded.",
                    .{url},
                ),
                "This data directory is an old copy: use the one that was used last, or enrol again.",
            ),
            else => try findings.report(
                .problem,
                .uplink,
                try findings.print(
                    "{s} answers with HTTP status {d}, which is not a control plane's answer.",
                    .{ url, answer.status },
                ),
                "Check the URL; if it is right, look at the control plane's log.",
            ),
        },
    }
}

fn addClock(findings: *Findings, theirs_s: u64) error{OutOfMemory}!void {
    const ours_s = host.sys.unixMs() / 1000;
    const offset_s = @max(ours_s, theirs_s) - @min(ours_s, theirs_s);
    if (offset_s <= clock_offset_s_max)
        return findings.ok(
            .clock,
            "This clock and the control plane's agree within {d} s.",
            .{@max(offset_s, 1)},
        );
    try findings.report(
        .warning,
        .clock,
        try findings.print("This clock is {d} s {s} of the control plane's.", .{
            offset_s, if (ours_s > theirs_s) "ahead" else "behind",
        }),
        "Set both with NTP (timedatectl set-ntp true): boots would show wrong times.",
    );
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7) into seconds since the Unix
/// epoch.
fn parseDate(text: []const u8) ?u64 {
    const months =
        [_][]const u8{
            "Jan",
            "Feb",
            "Mar",
            "Apr",
            "May",
            "Jun",
            "Jul",
            "Aug",
            "Sep",
            "Oct",
            "Nov",
            "Dec",
        };
    if (text.len != 29 or !std.mem.endsWith(u8, text, " GMT")) return null;
    const day = std.fmt.parseInt(u8, text[5..7], 10) catch return null;
    const month: usize = for (months, 0..) |name, index| {
        if (std.mem.eql(u8, name, text[8..11])) break index;
    } else return null;
    const year = std.fmt.parseInt(u16, text[12..16], 10) catch return null;
    const hour = std.fmt.parseInt(u8, text[17..19], 10) catch return null;
    const minute = std.fmt.parseInt(u8, text[20..22], 10) catch return null;
    const second = std.fmt.parseInt(u8, text[23..25], 10) catch return null;
    if (year < 1970 or day < 1 or day > 31 or hour > 23 or minute > 59 or second > 60) return null;
    // Days since 1970-01-01 in the proleptic Gregorian calendar. The year begins in March, so that
    // a leap day is its last.
    const is_early = month < 2;
    const y: u64 = @as(u64, year) - @intFromBool(is_early);
    const m: u64 = if (is_early) month + 10 else month - 2;
    const days = 365 * y + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719_468;
    return days * 86_400 + @as(u64, hour) * 3600 + @as(u64, minute) * 60 + second;
}

test "a Date header is parsed into seconds since the Unix epoch" {
    try std.testing.expectEqual(784111777, parseDate("Sun, 06 Nov 1994 08:49:37 GMT"));
    try std.testing.expectEqual(0, parseDate("Thu, 01 Jan 1970 00:00:00 GMT"));
    try std.testing.expectEqual(1709164800, parseDate("Thu, 29 Feb 2024 00:00:00 GMT"));
    try std.testing.expectEqual(null, parseDate("Thu, 29 Foo 2024 00:00:00 GMT"));
    try std.testing.expectEqual(null, parseDate("now"));
}
