//! Phases, sources, outcomes and causes of a boot, and the counters of one phase. The names are
//! those of packages/proto/boot-phases.json; a test keeps them equal. Times are µs since the boot's
//! start.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const Phase = enum(u8) {
    firmware,
    dhcp,
    nbp,
    loader,
    stage1,
    breather,
    stage2,
    ready,

    pub const count = @typeInfo(Phase).@"enum".field_names.len;

    /// A boot that is silent for this long in the phase counts as silent. `ready` has no limit.
    pub fn silenceLimitUs(phase: Phase) ?u64 {
        const limit_ms: u64 = switch (phase) {
            .firmware => 120_000,
            .dhcp => 60_000,
            .nbp => 60_000,
            .loader => 120_000,
            .stage1 => 120_000,
            .breather => 180_000,
            .stage2 => 300_000,
            .ready => return null,
        };
        return limit_ms * std.time.us_per_ms;
    }
};

/// Where a value comes from: the edge observed it, the device reported it, or the edge inferred it.
pub const Source = enum { observed, reported, inferred };

pub const OutcomeKind = enum { ready, failed, silent, superseded, local_disk };

pub const Cause = enum {
    nbp_not_found,
    nbp_architecture_mismatch,
    tftp_refused,
    tftp_timeout,
    file_not_found,
    token_refused,
    version_missing,
    store_read_error,
    kernel_mismatch,
    kernel_architecture_mismatch,
    kernel_without_nbd,
    stream_unreachable,
    disk_truncated,
    root_not_found,
    write_cache_full,
    write_cache_lost,
    write_cache_of_another_version,
    write_cache_unusable,
    write_cache_disk_unusable,
    writes_at_another_edge,
    guest_reported_failure,
    other_offer_won,
    address_pool_exhausted,
    nbp_not_started,
    tftp_option_refused,
    path_mtu_black_hole,
    guest_stopped_reading,
    mac_in_use,
    identity_refused,
};

/// The texts of a cause for people; slices live as long as `arena`.
pub const CauseText = struct { name: []const u8, sentence: []const u8, remedy: []const u8 };

/// Returns the sentence and the remedy of boot-phases.json.
pub fn causeText(arena: std.mem.Allocator, cause: Cause) error{OutOfMemory}!CauseText {
    const Causes = struct { causes: []const CauseText };
    const table = std.json.parseFromSliceLeaky(Causes, arena, table_json, .{
        .ignore_unknown_fields = true,
    }) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        // The table is part of this program, and a test reads it.
        else => unreachable,
    };
    return table.causes[@backingInt(cause)];
}

const table_json = @embedFile("boot_phases_json");

pub const Failure = struct { phase: Phase, cause: Cause, text: base.UntrustedText = .empty };

pub const Outcome = union(OutcomeKind) {
    ready,
    failed: Failure,
    silent: Phase,
    superseded,
    /// The boot menu sent the device to its local disk.
    local_disk,
};

/// Bytes and packets since the last such event; `in` is from the device to the edge.
pub const Traffic = struct {
    bytes_in: u64 = 0,
    bytes_out: u64 = 0,
    packets_in: u64 = 0,
    packets_out: u64 = 0,
    retries: u64 = 0,
    missing_fragments: u64 = 0,
};

/// A silence within a phase.
pub const Gap = struct { at_us: u64, duration_us: u64 };

pub const gaps_max = 8;
const gap_threshold_us = 250 * std.time.us_per_ms;
const read_size_classes = 16;

/// Counters of one phase of one boot.
pub const PhaseRecord = struct {
    start_us: u64,
    /// Null while the phase is in progress.
    end_us: ?u64 = null,
    source: Source,
    /// The last packet in either direction.
    last_us: u64,
    /// The last packet in which the device requested or acknowledged part of what this phase loads.
    /// Neither the edge's retransmissions nor the DHCP of the next program count. Null in a record
    /// that an older edge wrote.
    advanced_us: ?u64 = null,
    traffic: Traffic = .{},
    reads: u64 = 0,
    read_sizes: [read_size_classes]u64 = @splat(0),
    gaps: [gaps_max]Gap = @splat(.{ .at_us = 0, .duration_us = 0 }),
    gap_count: u8 = 0,

    pub fn init(start_us: u64, source: Source) PhaseRecord {
        return .{
            .start_us = start_us,
            .last_us = start_us,
            .advanced_us = start_us,
            .source = source,
        };
    }

    /// False for a record that no edge writes, as from a journal.
    pub fn isSound(record: *const PhaseRecord) bool {
        if (record.gap_count > gaps_max) return false;
        return (record.end_us orelse record.start_us) >= record.start_us;
    }

    pub fn durationUs(record: *const PhaseRecord) ?u64 {
        const end_us = record.end_us orelse return null;
        assert(end_us >= record.start_us);
        return end_us - record.start_us;
    }

    /// Records that a packet passed; a long silence before it becomes a gap.
    pub fn touch(record: *PhaseRecord, now_us: u64) void {
        const silence_us = now_us -| record.last_us;
        if (silence_us > gap_threshold_us)
            record.addGap(.{ .at_us = record.last_us, .duration_us = silence_us });
        record.last_us = @max(record.last_us, now_us);
    }

    /// Records progress of the device in this phase. `at_us` may lie before other packets that were
    /// recorded.
    pub fn advance(record: *PhaseRecord, at_us: u64) void {
        record.touch(at_us);
        record.advanced_us = @max(record.advanced_us orelse record.start_us, at_us);
        assert(record.advanced_us.? >= at_us);
    }

    /// Where a phase ends if its end was not observed.
    pub fn lastAdvanceUs(record: *const PhaseRecord) u64 {
        return record.advanced_us orelse record.last_us;
    }

    pub fn count(record: *PhaseRecord, traffic: Traffic) void {
        const total = &record.traffic;
        total.bytes_in += traffic.bytes_in;
        total.bytes_out += traffic.bytes_out;
        total.packets_in += traffic.packets_in;
        total.packets_out += traffic.packets_out;
        total.retries += traffic.retries;
        total.missing_fragments += traffic.missing_fragments;
    }

    /// Class i counts sizes in (2^(i+8), 2^(i+9)], class 0 all up to 512, the last class all larger
    /// ones.
    pub fn countRead(record: *PhaseRecord, size: u64) void {
        record.reads += 1;
        record.read_sizes[readSizeClass(size)] += 1;
    }

    pub fn gapSlice(record: *const PhaseRecord) []const Gap {
        return record.gaps[0..record.gap_count];
    }

    /// When all slots are taken the longest gaps stay, in order of time.
    fn addGap(record: *PhaseRecord, gap: Gap) void {
        assert(record.gap_count <= gaps_max);
        if (record.gap_count == gaps_max) {
            var shortest: u8 = 0;
            for (record.gaps, 0..) |candidate, index| {
                if (candidate.duration_us < record.gaps[shortest].duration_us)
                    shortest = @intCast(index);
            }
            if (record.gaps[shortest].duration_us >= gap.duration_us) return;
            std.mem.copyForwards(
                Gap,
                record.gaps[shortest..],
                record.gaps[shortest + 1 ..],
            );
            record.gap_count -= 1;
        }
        record.gaps[record.gap_count] = gap;
        record.gap_count += 1;
        assert(record.gap_count <= gaps_max);
    }
};

fn readSizeClass(size: u64) usize {
    const bits = 64 - @clz(size -| 1);
    return @min(bits -| 9, read_size_classes - 1);
}

const testing = std.testing;

const Table = struct {
    version: u32,
    phases: []const struct { name: []const u8, silenceLimitMs: u64 },
    sources: []const []const u8,
    outcomes: []const []const u8,
    causes: []const struct { name: []const u8 },
};

fn expectNames(comptime E: type, rows: anytype) !void {
    const names = @typeInfo(E).@"enum".field_names;
    try testing.expectEqual(names.len, rows.len);
    inline for (names, 0..) |name, index| {
        const row = rows[index];
        const text = if (@TypeOf(row) == []const u8) row else row.name;
        try testing.expectEqualStrings(name, text);
    }
}

test "phases, sources, outcomes, causes and limits match boot-phases.json" {
    const parsed = try std.json.parseFromSlice(Table, testing.allocator, table_json, .{
        .ignore_unknown_fields = true,
    });
    defer parsed.deinit();
    const table = parsed.value;
    try testing.expectEqual(1, table.version);
    try expectNames(Phase, table.phases);
    try expectNames(Source, table.sources);
    try expectNames(OutcomeKind, table.outcomes);
    try expectNames(Cause, table.causes);
    for (table.phases, 0..) |row, index| {
        const phase: Phase = @fromBackingInt(@as(u8, @intCast(index)));
        const limit_us = phase.silenceLimitUs() orelse 0;
        try testing.expectEqual(row.silenceLimitMs * std.time.us_per_ms, limit_us);
    }
}

test "every cause has a sentence and a remedy" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    for (std.enums.values(Cause)) |cause| {
        const words = try causeText(arena.allocator(), cause);
        try testing.expectEqualStrings(@tagName(cause), words.name);
        try testing.expect(words.sentence.len > 10 and words.remedy.len > 10);
    }
}

test "read sizes fall into the classes of the report" {
    try testing.expectEqual(0, readSizeClass(0));
    try testing.expectEqual(0, readSizeClass(1));
    try testing.expectEqual(0, readSizeClass(512));
    try testing.expectEqual(1, readSizeClass(513));
    try testing.expectEqual(1, readSizeClass(1024));
    try testing.expectEqual(3, readSizeClass(4096));
    try testing.expectEqual(4, readSizeClass(4097));
    try testing.expectEqual(15, readSizeClass(1 << 40));
}

test "only silences above the threshold are gaps, and the longest eight stay in order" {
    var record: PhaseRecord = .init(0, .observed);
    record.touch(gap_threshold_us);
    try testing.expectEqual(0, record.gap_count);
    var now_us: u64 = gap_threshold_us;
    for ([_]u64{ 300, 900, 400, 500, 600, 700, 800, 1000, 350, 260 }) |silence_ms| {
        now_us += silence_ms * std.time.us_per_ms;
        record.touch(now_us);
    }
    const want = [_]u64{ 900, 400, 500, 600, 700, 800, 1000, 350 };
    try testing.expectEqual(gaps_max, record.gap_count);
    for (want, record.gapSlice()) |silence_ms, gap|
        try testing.expectEqual(silence_ms * std.time.us_per_ms, gap.duration_us);
}

test "of gaps that do not all fit, the earliest of the shortest goes, and an equal one stays out" {
    var record: PhaseRecord = .init(0, .observed);
    for ([_]u64{ 900, 800, 300, 700, 300, 600, 500, 400 }) |silence_ms|
        record.touch(record.last_us + silence_ms * std.time.us_per_ms);
    const before = record;
    // As short as the shortest.
    record.touch(record.last_us + 300 * std.time.us_per_ms);
    try testing.expectEqualDeep(before.gaps, record.gaps);
    const at_us = record.last_us;
    record.touch(at_us + 301 * std.time.us_per_ms);
    const starts_ms = [_]u64{ 0, 900, 2000, 2700, 3000, 3600, 4100, at_us / std.time.us_per_ms };
    for (starts_ms, record.gapSlice()) |start_ms, gap|
        try testing.expectEqual(start_ms * std.time.us_per_ms, gap.at_us);
    // All are equal.
    var even: PhaseRecord = .init(0, .observed);
    for (0..gaps_max) |_| even.touch(even.last_us + 300 * std.time.us_per_ms);
    even.touch(even.last_us + 301 * std.time.us_per_ms);
    try testing.expectEqual(300 * std.time.us_per_ms, even.gaps[0].at_us);
}

test "an earlier packet changes no time, and progress is a packet too" {
    var record: PhaseRecord = .init(1000, .observed);
    record.advance(1500);
    try testing.expectEqual(1500, record.last_us);
    record.advance(1400);
    record.touch(1300);
    try testing.expectEqual(1500, record.last_us);
    try testing.expectEqual(1500, record.lastAdvanceUs());
    try testing.expectEqual(0, record.gap_count);
}

test "traffic adds up, each number for itself" {
    var record: PhaseRecord = .init(0, .observed);
    const traffic: Traffic = .{
        .bytes_in = 1,
        .bytes_out = 2,
        .packets_in = 3,
        .packets_out = 4,
        .retries = 5,
        .missing_fragments = 6,
    };
    record.count(traffic);
    try testing.expectEqual(traffic, record.traffic);
    record.count(traffic);
    try testing.expectEqual(8, record.traffic.packets_out);
}

test "a record with more gaps than places, or an end before its start, is not sound" {
    var record: PhaseRecord = .init(1000, .observed);
    try testing.expect(record.isSound());
    record.end_us = 1000;
    record.gap_count = gaps_max;
    try testing.expect(record.isSound());
    record.gap_count += 1;
    try testing.expect(!record.isSound());
    record.gap_count = 0;
    record.end_us = 999;
    try testing.expect(!record.isSound());
}
