//! The edge's metrics for Prometheus (text exposition format 0.0.4). The packet loop counts for
//! itself and hands over a copy once a second; a scraper reads that copy and never touches the
//! loop. Every label's values are those of an enum: the page cannot grow.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const LayerCopies = @import("../layer_copies/layer_copies.zig");
const SitePeers = @import("../difference/site_peers.zig");
const write_caches = @import("agent").write_caches;
const ProfileFigures = @import("agent").profiles.Figures;
const ReportLog = @import("../files/report_log.zig").ReportLog;
const health = @import("../health.zig");
const Io = std.Io;

const Phase = core.boot.phase.Phase;
const OutcomeKind = core.boot.phase.OutcomeKind;

/// Upper bounds of a histogram's buckets.
const bounds_ms = [_]u64{ 100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000 };
const outcome_count = @typeInfo(OutcomeKind).@"enum".field_names.len;

pub const Histogram = struct {
    /// Not cumulative; the last one counts what is above every bound.
    counts: [bounds_ms.len + 1]u64 = @splat(0),
    sum_us: u64 = 0,

    pub fn observe(histogram: *Histogram, duration_us: u64) void {
        const index = for (bounds_ms, 0..) |bound_ms, index| {
            if (duration_us <= bound_ms * std.time.us_per_ms) break index;
        } else bounds_ms.len;
        histogram.counts[index] += 1;
        histogram.sum_us +|= duration_us;
    }
};

/// Counts boots that ended since the start, each once.
pub const BootCounters = struct {
    outcomes: [outcome_count]u64 = @splat(0),
    phases: [Phase.count]Histogram = @splat(.{}),

    /// `boot` has just got its outcome.
    pub fn count(counters: *BootCounters, boot: *const core.boot.Boot) void {
        counters.outcomes[@backingInt(std.meta.activeTag(boot.outcome.?))] += 1;
        for (&boot.phases, &counters.phases) |*phase, *histogram| {
            const record = if (phase.*) |*record| record else continue;
            if (record.durationUs()) |duration_us| histogram.observe(duration_us);
        }
    }
};

pub const FillLevel = write_caches.FillLevel;
pub const FillCounts = write_caches.FillCounts;

/// Why a READ got no answer: it was a duplicate of one in progress, the queue was full, or its
/// device was gone.
pub const Unanswered = enum { repeated, no_room, device_gone };
const unanswered_count = @typeInfo(Unanswered).@"enum".field_names.len;

/// The counters of one thread that serves the stream.
pub const Shard = struct {
    reads: u64,
    sessions: u64,
    forwarded: u64 = 0,
    packets_lost: u64 = 0,
    events_lost: u64 = 0,
};
const PiecePacker = @import("../stream/piece_packer.zig");
const shards_max = @import("../stream/shards.zig").shards_max;

/// Counters of the packet loop.
pub const LoopFigures = struct {
    boots: BootCounters = .{},
    ignored: base.IgnoredCounters = .{},
    devices_booting: u64 = 0,
    streams_open: u64 = 0,
    tftp_bytes: u64 = 0,
    http_bytes: u64 = 0,
    stream_bytes: u64 = 0,
    stream_reads: u64 = 0,
    stream_cold_reads: u64 = 0,
    /// How long these waited, together.
    stream_cold_us: u64 = 0,
    /// Answered with an error of the store.
    store_errors: u64 = 0,
    stream_unanswered: [unanswered_count]u64 = @splat(0),
    /// From shard 0 on; `stream_reads` and the like are sums over all shards.
    shards: base.BoundedArray(Shard, shards_max) = .empty,
    /// Those at this edge, of devices that are heard.
    write_caches: FillCounts = @splat(0),
    profiles: ProfileFigures = .{},
    /// Null without a control plane.
    differences: ?SitePeers.Moved = null,
    /// Null: this edge has no part in them.
    cache_copies: ?LayerCopies.Figures = null,
};

/// Values of other threads, read when the page is requested.
pub const OtherFigures = struct {
    uptime_us: u64,
    clock_ms: u64,
    /// Null without a control plane.
    uplink: ?Uplink = null,
    /// Also null if the system does not tell.
    machine: ?core.uplink.message.Machine = null,
    /// Also null if the store has not been listed yet.
    store: ?Store = null,
    /// Bytes read into memory ahead of boots; null if nothing is learned from boots.
    warmed_bytes: ?u64 = null,
    /// Null where nothing is packed.
    answer_pieces: ?PackedFigures = null,

    pub const Store = struct {
        versions: u64,
        damaged: u64,
        packing_done: u64,
        packing_total: u64,
    };

    pub const Uplink = struct {
        is_up: bool,
        report_backlog: u64,
        losses: ?ReportLog.Losses = null,
        state: core.uplink.desired_state.Pair,
        epoch: u64,
    };
};

pub const PackedFigures = struct {
    pieces: u64,
    used_bytes: u64,
    size_bytes: u64,
    added: u64,
    evicted: u64,
    answers: u64,
    saved_bytes: u64,

    pub fn of(packer: *const PiecePacker) PackedFigures {
        const pieces = &packer.pieces;
        return .{
            .pieces = pieces.piece_count.load(.monotonic),
            .used_bytes = pieces.used_bytes.load(.monotonic),
            .size_bytes = pieces.memory.len,
            .added = pieces.added_count.load(.monotonic),
            .evicted = pieces.evicted_count.load(.monotonic),
            .answers = packer.answers.get(),
            .saved_bytes = packer.saved_bytes.get(),
        };
    }
};

pub const MetricsPage = struct {
    io: Io,
    mutex: Io.Mutex = .init,
    figures: LoopFigures = .{},

    /// Called by the packet loop: holds the lock for a copy of some KiB.
    pub fn set(page: *MetricsPage, figures: *const LoopFigures) void {
        page.mutex.lockUncancelable(page.io);
        defer page.mutex.unlock(page.io);
        page.figures = figures.*;
    }

    pub fn get(page: *MetricsPage) LoopFigures {
        page.mutex.lockUncancelable(page.io);
        defer page.mutex.unlock(page.io);
        return page.figures;
    }
};

/// The longest page: every reason, every bucket of every phase, with numbers of 20 digits.
pub const size_max = 32 * 1024;

pub fn render(
    writer: *Io.Writer,
    figures: *const LoopFigures,
    other: OtherFigures,
) Io.Writer.Error!void {
    try head(writer, "build_info", "gauge", "Always 1; the version that runs here.");
    try writer.print("bootfarm_edge_build_info{{version=\"{s}\"}} 1\n", .{base.version});
    try seconds(writer, "uptime_seconds", "Time since the start.", other.uptime_us);
    try seconds(
        writer,
        "clock_seconds",
        "Unix time by the edge's clock.",
        other.clock_ms * std.time.us_per_ms,
    );
    try head(writer, "boots_total", "counter", "Boots that ended, by outcome.");
    for (figures.boots.outcomes, 0..) |count, index| {
        const kind: OutcomeKind =
            @fromBackingInt(@as(@typeInfo(OutcomeKind).@"enum".tag_type, @intCast(index)));
        try writer.print("bootfarm_edge_boots_total{{outcome=\"{t}\"}} {d}\n", .{ kind, count });
    }
    try phases(writer, &figures.boots.phases);
    try gauge(writer, "devices_booting", "Boots in progress.", figures.devices_booting);
    try gauge(writer, "streams_open", "Devices that stream their disk.", figures.streams_open);
    try head(
        writer,
        "write_caches",
        "gauge",
        "Write caches at this edge, by fill level: below 80 %, from 80 %, from 95 %, full.",
    );
    for (figures.write_caches, 0..) |count, index| {
        const level: FillLevel =
            @fromBackingInt(@as(@typeInfo(FillLevel).@"enum".tag_type, @intCast(index)));
        try writer.print("bootfarm_edge_write_caches{{level=\"{t}\"}} {d}\n", .{ level, count });
    }
    try renderProblems(writer);
    try renderTraffic(writer, figures);
    try head(
        writer,
        "ignored_total",
        "counter",
        "Packets and requests that were ignored, by reason.",
    );
    for (figures.ignored.values, 0..) |count, index| {
        const reason: base.IgnoreReason = @fromBackingInt(@as(u8, @intCast(index)));
        try writer.print("bootfarm_edge_ignored_total{{reason=\"{t}\"}} {d}\n", .{ reason, count });
    }
    if (figures.differences) |*moved| try renderDifferences(writer, moved);
    if (figures.cache_copies) |*copies| try renderCacheCopies(writer, copies);
    if (other.uplink) |*uplink| try renderUplink(writer, uplink);
    if (other.machine) |*machine| try renderMachine(writer, machine);
    if (other.store) |*store| {
        try gauge(writer, "store_versions", "Versions of vDisks in the store.", store.versions);
        try gauge(writer, "store_versions_damaged", "Of these, damaged ones.", store.damaged);
        try gauge(
            writer,
            "store_packing_bytes",
            "Bytes of the disks that are packed again in the background; 0: none are.",
            store.packing_total,
        );
        try gauge(writer, "store_packing_done_bytes", "Of these, done.", store.packing_done);
    }
    if (other.answer_pieces) |*answer_pieces| try renderPacked(writer, answer_pieces);
    if (other.warmed_bytes) |bytes| try renderProfiles(writer, &figures.profiles, bytes);
}

fn renderProblems(writer: *Io.Writer) Io.Writer.Error!void {
    try head(writer, "degraded", "gauge", "1 while a disk has this problem.");
    for (std.enums.values(health.Problem)) |problem|
        try writer.print("bootfarm_edge_degraded{{problem=\"{t}\"}} {d}\n", .{
            problem, @intFromBool(health.has(problem)),
        });
}

fn renderDifferences(writer: *Io.Writer, moved: *const SitePeers.Moved) Io.Writer.Error!void {
    const what = "Bytes of differences that were sent and got, by the other side.";
    try head(writer, "difference_bytes_total", "counter", what);
    for (moved, 0..) |bytes, index| {
        const move: SitePeers.Move = @fromBackingInt(@as(
            @typeInfo(SitePeers.Move).@"enum".tag_type,
            @intCast(index),
        ));
        try writer.print("bootfarm_edge_difference_bytes_total{{move=\"{t}\"}} {d}\n", .{
            move, bytes,
        });
    }
}

fn renderCacheCopies(
    writer: *Io.Writer,
    copies: *const LayerCopies.Figures,
) Io.Writer.Error!void {
    const held = "Copies of other edges' write caches at this edge.";
    try head(writer, "cache_copies", "gauge", held);
    try writer.print("bootfarm_edge_cache_copies {d}\n", .{copies.held});
    const behind = "Copies of write caches that this edge could not bring up to date.";
    try head(writer, "cache_copies_behind", "gauge", behind);
    try writer.print("bootfarm_edge_cache_copies_behind {d}\n", .{copies.behind});
    const oldest = "When the oldest of the copies was taken, by its edge's clock; 0: none.";
    try head(writer, "cache_copies_oldest_seconds", "gauge", oldest);
    try writer.print("bootfarm_edge_cache_copies_oldest_seconds {d}.{d:0>3}\n", .{
        copies.oldest_unix_ms / 1000, copies.oldest_unix_ms % 1000,
    });
}

fn renderTraffic(writer: *Io.Writer, figures: *const LoopFigures) Io.Writer.Error!void {
    try head(writer, "sent_bytes_total", "counter", "Bytes sent, by transport.");
    const sent = [_]struct { []const u8, u64 }{
        .{ "tftp", figures.tftp_bytes },
        .{ "http", figures.http_bytes },
        .{ "stream", figures.stream_bytes },
    };
    for (sent) |pair|
        try writer.print("bootfarm_edge_sent_bytes_total{{transport=\"{s}\"}} {d}\n", .{
            pair[0], pair[1],
        });
    try head(writer, "stream_reads_total", "counter", "Disk reads over the stream.");
    try writer.print("bootfarm_edge_stream_reads_total {d}\n", .{figures.stream_reads});
    try counter(
        writer,
        "stream_cold_reads_total",
        "Of these, reads that waited for a disk or for verification.",
        figures.stream_cold_reads,
    );
    try counter(
        writer,
        "store_errors_total",
        "Reads that the store could not give: damaged blocks, or a disk that fails.",
        figures.store_errors,
    );
    try head(
        writer,
        "stream_reads_unanswered_total",
        "counter",
        "Disk reads without an answer, by reason.",
    );
    for (figures.stream_unanswered, 0..) |count, index| {
        const why: Unanswered =
            @fromBackingInt(@as(@typeInfo(Unanswered).@"enum".tag_type, @intCast(index)));
        try writer.print("bootfarm_edge_stream_reads_unanswered_total{{reason=\"{t}\"}} {d}\n", .{
            why, count,
        });
    }
    try renderShards(writer, figures.shards.constSlice());
}

fn renderShards(writer: *Io.Writer, shards: []const Shard) Io.Writer.Error!void {
    try head(writer, "stream_shard_reads_total", "counter", "Disk reads served, by shard.");
    try eachShard(writer, shards, "stream_shard_reads_total", .reads);
    try head(writer, "stream_shard_sessions", "gauge", "Devices whose reads a shard serves.");
    try eachShard(writer, shards, "stream_shard_sessions", .sessions);
    try head(
        writer,
        "stream_shard_forwarded_total",
        "counter",
        "Packets that a shard forwarded to shard 0.",
    );
    try eachShard(writer, shards, "stream_shard_forwarded_total", .forwarded);
    try head(
        writer,
        "stream_shard_lost_total",
        "counter",
        "Packets, and read events for reports, lost because a ring to shard 0 was full.",
    );
    for (shards, 0..) |*shard, number| {
        try writer.print(
            "bootfarm_edge_stream_shard_lost_total{{shard=\"{d}\",reason=\"packet\"}} {d}\n",
            .{ number, shard.packets_lost },
        );
        try writer.print(
            "bootfarm_edge_stream_shard_lost_total{{shard=\"{d}\",reason=\"event\"}} {d}\n",
            .{ number, shard.events_lost },
        );
    }
}

fn eachShard(
    writer: *Io.Writer,
    shards: []const Shard,
    name: []const u8,
    comptime field: std.meta.FieldEnum(Shard),
) Io.Writer.Error!void {
    for (shards, 0..) |*shard, number|
        try writer.print("bootfarm_edge_{s}{{shard=\"{d}\"}} {d}\n", .{
            name, number, @field(shard, @tagName(field)),
        });
}

fn renderProfiles(
    writer: *Io.Writer,
    figures: *const ProfileFigures,
    warmed_bytes: u64,
) Io.Writer.Error!void {
    try counter(
        writer,
        "profile_boots_total",
        "Boots that boot profiles were learned from.",
        figures.boots,
    );
    try counter(
        writer,
        "profile_handed_total",
        "Boot profiles that devices have read.",
        figures.handed,
    );
    const ahead = "Bytes that devices read ahead of demand, in boots that were learned from.";
    try counter(writer, "profile_ahead_bytes_total", ahead, figures.ahead_bytes);
    try counter(
        writer,
        "profile_used_bytes_total",
        "Of these, bytes that their systems used.",
        figures.used_bytes,
    );
    try counter(
        writer,
        "profile_warmed_bytes_total",
        "Bytes read into this machine's memory ahead of boots.",
        warmed_bytes,
    );
}

fn renderPacked(writer: *Io.Writer, figures: *const PackedFigures) Io.Writer.Error!void {
    try gauge(writer, "answer_pieces", "Packed pieces of answers in memory.", figures.pieces);
    try gauge(writer, "answer_pieces_bytes", "Memory that they take.", figures.used_bytes);
    try gauge(writer, "answer_pieces_size_bytes", "Memory that they may take.", figures.size_bytes);
    try counter(writer, "answer_pieces_added_total", "Pieces that were packed.", figures.added);
    const evicted = "Pieces that made room for others, or for a smaller form.";
    try counter(writer, "answer_pieces_evicted_total", evicted, figures.evicted);
    const answers = "Reads of the stream that were answered packed.";
    try counter(writer, "stream_packed_answers_total", answers, figures.answers);
    const saved = "Bytes that packed answers saved on the wire.";
    try counter(writer, "stream_packed_saved_bytes_total", saved, figures.saved_bytes);
}

fn counter(
    writer: *Io.Writer,
    name: []const u8,
    help: []const u8,
    value: u64,
) Io.Writer.Error!void {
    try head(writer, name, "counter", help);
    try writer.print("bootfarm_edge_{s} {d}\n", .{ name, value });
}

fn renderMachine(
    writer: *Io.Writer,
    machine: *const core.uplink.message.Machine,
) Io.Writer.Error!void {
    try head(writer, "load_average", "gauge", "Load average over one minute.");
    try writer.print("bootfarm_edge_load_average {d:.2}\n", .{machine.loadAverage});
    try gauge(writer, "processors", "Cores of this machine.", machine.processors);
    try gauge(writer, "memory_size_bytes", "Memory of this machine.", machine.memoryTotalBytes);
    try gauge(
        writer,
        "memory_available_bytes",
        "Of this, available memory.",
        machine.memoryAvailableBytes,
    );
    const cache =
        "Of this, memory of the page cache: what is read there is not read from the store.";
    try gauge(writer, "block_cache_bytes", cache, machine.fileCacheBytes);
    try gauge(
        writer,
        "store_size_bytes",
        "Size of the file system with the vDisks.",
        machine.storeTotalBytes,
    );
    try gauge(writer, "store_available_bytes", "Of this, free space.", machine.storeFreeBytes);
}

fn renderUplink(writer: *Io.Writer, uplink: *const OtherFigures.Uplink) Io.Writer.Error!void {
    try gauge(
        writer,
        "uplink_up",
        "1 while the control plane answers.",
        @intFromBool(uplink.is_up),
    );
    try gauge(
        writer,
        "report_backlog",
        "Reports that the control plane has not acknowledged.",
        uplink.report_backlog,
    );
    if (uplink.losses) |*losses| {
        try head(writer, "reports_lost_total", "counter", "Reports lost since the start.");
        try writer.print("bootfarm_edge_reports_lost_total {d}\n", .{losses.since_start});
        const gaps = "Gaps of lost reports that the control plane has not acknowledged.";
        try gauge(writer, "report_gaps", gaps, losses.gap_count);
        try gauge(writer, "report_gap_reports", "Reports in these gaps.", losses.gap_reports);
    }
    try gauge(writer, "boot_epoch", "Number of this start, which grows with each.", uplink.epoch);
    try gauge(
        writer,
        "state_incarnation",
        "Incarnation of the desired state in force.",
        uplink.state.incarnation,
    );
    try gauge(
        writer,
        "state_counter",
        "Counter of the desired state in force.",
        uplink.state.counter,
    );
}

fn phases(writer: *Io.Writer, histograms: *const [Phase.count]Histogram) Io.Writer.Error!void {
    const name = "bootfarm_edge_boot_phase_duration_seconds";
    try head(
        writer,
        "boot_phase_duration_seconds",
        "histogram",
        "Duration of boot phases that ended.",
    );
    for (histograms, 0..) |*histogram, index| {
        const phase: Phase = @fromBackingInt(@as(u8, @intCast(index)));
        var total: u64 = 0;
        for (bounds_ms, histogram.counts[0..bounds_ms.len]) |bound_ms, count| {
            total += count;
            try writer.print(name ++ "_bucket{{phase=\"{t}\",le=\"{d}.{d}\"}} {d}\n", .{
                phase, bound_ms / 1000, bound_ms % 1000 / 100, total,
            });
        }
        total += histogram.counts[bounds_ms.len];
        try writer.print(name ++ "_bucket{{phase=\"{t}\",le=\"+Inf\"}} {d}\n", .{ phase, total });
        try writer.print(name ++ "_sum{{phase=\"{t}\"}} {d}.{d:0>6}\n", .{
            phase, histogram.sum_us / std.time.us_per_s, histogram.sum_us % std.time.us_per_s,
        });
        try writer.print(name ++ "_count{{phase=\"{t}\"}} {d}\n", .{ phase, total });
    }
}

fn head(
    writer: *Io.Writer,
    name: []const u8,
    kind: []const u8,
    help: []const u8,
) Io.Writer.Error!void {
    try writer.print("# HELP bootfarm_edge_{s} {s}\n# TYPE bootfarm_edge_{s} {s}\n", .{
        name, help, name, kind,
    });
}

fn gauge(writer: *Io.Writer, name: []const u8, help: []const u8, value: u64) Io.Writer.Error!void {
    try head(writer, name, "gauge", help);
    try writer.print("bootfarm_edge_{s} {d}\n", .{ name, value });
}

fn seconds(
    writer: *Io.Writer,
    name: []const u8,
    help: []const u8,
    value_us: u64,
) Io.Writer.Error!void {
    try head(writer, name, "gauge", help);
    try writer.print("bootfarm_edge_{s} {d}.{d:0>6}\n", .{
        name, value_us / std.time.us_per_s, value_us % std.time.us_per_s,
    });
}

const testing = std.testing;

test "a histogram's buckets add up" {
    var figures: LoopFigures =
        .{ .write_caches = .{ 4, 0, 1, 2 }, .differences = .{ 7, 0, 0, 3 } };
    figures.cache_copies = .{ .held = 2, .behind = 1, .oldest_unix_ms = 7008 };
    const nbp = &figures.boots.phases[@backingInt(Phase.nbp)];
    nbp.observe(100_000);
    nbp.observe(100_001);
    nbp.observe(999_000_000);
    var buffer: [size_max]u8 = undefined;
    var writer: Io.Writer = .fixed(&buffer);
    try render(&writer, &figures, .{ .uptime_us = 1_500_000, .clock_ms = 0 });
    const page = writer.buffered();
    const name = "bootfarm_edge_boot_phase_duration_seconds";
    for ([_][]const u8{
        name ++ "_bucket{phase=\"nbp\",le=\"0.1\"} 1\n",
        "bootfarm_edge_write_caches{level=\"ok\"} 4\n",
        "bootfarm_edge_write_caches{level=\"full\"} 2\n",
        "bootfarm_edge_difference_bytes_total{move=\"to_edge\"} 7\n",
        "bootfarm_edge_difference_bytes_total{move=\"from_control_plane\"} 3\n",
        "bootfarm_edge_cache_copies 2\n",
        "bootfarm_edge_cache_copies_behind 1\n",
        "bootfarm_edge_cache_copies_oldest_seconds 7.008\n",
        name ++ "_bucket{phase=\"nbp\",le=\"0.5\"} 2\n",
        name ++ "_bucket{phase=\"nbp\",le=\"160.0\"} 2\n",
        name ++ "_bucket{phase=\"nbp\",le=\"+Inf\"} 3\n",
        name ++ "_sum{phase=\"nbp\"} 999.200001\n",
        name ++ "_count{phase=\"nbp\"} 3\n",
        "bootfarm_edge_uptime_seconds 1.500000\n",
    }) |line| try testing.expect(std.mem.find(u8, page, line) != null);
    try testing.expect(std.mem.find(u8, page, "uplink") == null);
}

test "the longest page fits" {
    var figures: LoopFigures = .{
        .devices_booting = std.math.maxInt(u64),
        .streams_open = std.math.maxInt(u64),
        .tftp_bytes = std.math.maxInt(u64),
        .http_bytes = std.math.maxInt(u64),
        .stream_bytes = std.math.maxInt(u64),
        .stream_reads = std.math.maxInt(u64),
        .stream_cold_reads = std.math.maxInt(u64),
        .stream_unanswered = @splat(std.math.maxInt(u64)),
        .differences = @splat(std.math.maxInt(u64)),
        .cache_copies = .{
            .held = std.math.maxInt(u32),
            .oldest_unix_ms = std.math.maxInt(u64),
            .behind = std.math.maxInt(u32),
        },
    };
    @memset(&figures.ignored.values, std.math.maxInt(u64));
    @memset(&figures.boots.outcomes, std.math.maxInt(u64));
    for (&figures.boots.phases) |*histogram| {
        // Their sum fits 64 bits.
        @memset(&histogram.counts, std.math.maxInt(u64) / histogram.counts.len);
        histogram.sum_us = std.math.maxInt(u64);
    }
    const most = std.math.maxInt(u64) / std.time.us_per_ms;
    figures.profiles = .{ .boots = most, .ahead_bytes = most, .used_bytes = most, .handed = most };
    var buffer: [size_max]u8 = undefined;
    var writer: Io.Writer = .fixed(&buffer);
    try render(&writer, &figures, .{
        .uptime_us = std.math.maxInt(u64),
        .clock_ms = most,
        .uplink = .{
            .is_up = true,
            .report_backlog = std.math.maxInt(u64),
            .state = .{ .incarnation = most, .counter = most },
            .epoch = most,
            .losses = .{ .since_start = most, .gap_count = most, .gap_reports = most },
        },
        .machine = .{
            .loadAverage = 1_000_000,
            .processors = most,
            .memoryTotalBytes = most,
            .memoryAvailableBytes = most,
            .fileCacheBytes = most,
            .storeTotalBytes = most,
            .storeFreeBytes = most,
        },
        .store = .{
            .versions = most,
            .damaged = most,
            .packing_done = most,
            .packing_total = most,
        },
        .warmed_bytes = most,
        .answer_pieces = .{
            .pieces = most,
            .used_bytes = most,
            .size_bytes = most,
            .added = most,
            .evicted = most,
            .answers = most,
            .saved_bytes = most,
        },
    });
    try testing.expect(std.mem.endsWith(u8, writer.buffered(), "\n"));
}
