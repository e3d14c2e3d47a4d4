//! `bootfarm-sim history`: generated boots, for a demo that would otherwise start empty. Each runs
//! through the edge's own boot machine and into its report log, marked `generated`, before the edge
//! starts for the first time (docs/decisions/0004-demo-history-through-the-report-log.md). The same
//! seed gives the same boots on the same days.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const Prng = base.Prng;

pub const days_max = 366;
pub const devices_max = 64;
const boots_per_day_max = 4;

pub const Options = struct {
    seed: u64,
    days: u16,
    devices: u8,
    first_mac: base.Mac,
    /// The history ends an hour before this instant.
    now_unix_ms: u64,
};

const day_ms = std.time.ms_per_day;
const hour_ms = std.time.ms_per_hour;

/// Outcome of a generated boot.
const BootOutcome = enum { ready, tftp_timeout, token_refused, silent, superseded };

const Plan = struct {
    start_unix_ms: u64,
    device: u8,
    fate: BootOutcome,
    /// Percent of an ordinary boot's time.
    slowness: u64,

    fn before(_: void, a: Plan, b: Plan) bool {
        if (a.start_unix_ms != b.start_unix_ms) return a.start_unix_ms < b.start_unix_ms;
        return a.device < b.device;
    }
};

/// Plans in order of time; the caller owns the slice.
fn plan(gpa: std.mem.Allocator, prng: *Prng, options: Options) error{OutOfMemory}![]Plan {
    assert(options.days <= days_max and options.devices <= devices_max);
    var plans: std.ArrayList(Plan) = .empty;
    errdefer plans.deinit(gpa);
    const today_ms = options.now_unix_ms / day_ms * day_ms;
    const slow_day = options.days / 3;
    for (0..options.days) |index| {
        const day_start_ms = today_ms -| (options.days - index) * day_ms + day_ms;
        // 1 January 1970 was a Thursday.
        const weekday = (day_start_ms / day_ms + 3) % 7;
        for (0..options.devices) |device| {
            const count = if (weekday >= 5) prng.below(2) else prng.between(2, boots_per_day_max);
            for (0..count) |_| {
                const start_ms = day_start_ms + startOfDay(prng);
                if (start_ms + hour_ms > options.now_unix_ms) continue;
                const base_slowness = prng.between(85, 130);
                try plans.append(gpa, .{
                    .start_unix_ms = start_ms,
                    .device = @intCast(device),
                    .fate = fateOf(prng),
                    .slowness = if (index == slow_day) base_slowness * 5 / 2 else base_slowness,
                });
            }
        }
    }
    base.sort(Plan, plans.items, {}, Plan.before);
    return plans.toOwnedSlice(gpa);
}

/// Most machines start when people arrive, some after lunch, the rest at any time of the working
/// day.
fn startOfDay(prng: *Prng) u64 {
    const minute = switch (prng.below(10)) {
        0...5 => prng.between(7 * 60 + 20, 9 * 60),
        6...7 => prng.between(12 * 60 + 40, 13 * 60 + 30),
        else => prng.between(6 * 60, 20 * 60),
    };
    return minute * std.time.ms_per_min + prng.below(std.time.ms_per_min);
}

fn fateOf(prng: *Prng) BootOutcome {
    return switch (prng.below(200)) {
        0...1 => .tftp_timeout,
        2 => .token_refused,
        3...4 => .silent,
        5 => .superseded,
        else => .ready,
    };
}

pub const WriteError = error{ OutOfMemory, ReportLogFull };

/// Generates the history and passes each boot, as the JSON of a report, to `log.appendBoot`.
/// Returns the number of boots.
pub fn write(gpa: std.mem.Allocator, options: Options, log: anytype) WriteError!u64 {
    var prng: Prng = .init(options.seed);
    const plans = try plan(gpa, &prng, options);
    defer gpa.free(plans);
    for (plans) |each| {
        var boot = happened(&prng, options, each);
        var buffer: [core.boot.report.size_max]u8 = undefined;
        const json = core.boot.report.encode(&boot, .{ .revision = 1, .generated = true }, &buffer);
        if (!log.appendBoot(json)) return error.ReportLogFull;
    }
    return plans.len;
}

/// Clock of a boot; each step advances it.
const ReportWriter = struct {
    boot: *Boot,
    prng: *Prng,
    slowness: u64,
    now_us: u64,

    fn tell(teller: *ReportWriter, event: core.boot.Event) void {
        teller.boot.apply(teller.now_us, event);
    }

    /// Advances by an ordinary time, scaled by chance and by the day's load.
    fn pass(teller: *ReportWriter, ordinary_us: u64) void {
        teller.now_us += ordinary_us * teller.slowness * teller.prng.between(80, 125) / 10_000;
    }

    fn dhcp(teller: *ReportWriter, client: core.boot.DhcpClient) void {
        const xid = teller.prng.nextU32();
        for ([_]core.boot.DhcpMessage{ .discover, .request }) |message| {
            teller.tell(
                .{
                    .dhcp_request = .{
                        .message = message,
                        .client = client,
                        .xid = xid,
                        .size = 320,
                    },
                },
            );
            teller.pass(400);
            teller.tell(.{ .dhcp_answer = .{ .size = 342 } });
            if (message == .discover) teller.pass(if (client == .rom) 1_050_000 else 30_000);
        }
    }

    fn file(teller: *ReportWriter, which: core.boot.LoaderFile, size: u64) void {
        teller.tell(.{ .loader_begin = which });
        teller.pass(1_500 + size / 110);
        teller.tell(
            .{
                .loader_traffic = .{
                    .bytes_in = 180,
                    .bytes_out = size,
                    .packets_in = 1,
                    .packets_out = size / 1448 + 1,
                },
            },
        );
        teller.tell(.{ .loader_end = which });
    }
};

const nbp_size = 71_680;
const nbp_block = 1432;
const read_count = 671;
const fragment_size = 1456;

fn happened(prng: *Prng, options: Options, each: Plan) Boot {
    var random: [16]u8 = undefined;
    prng.fill(&random);
    const id: base.Uuid = .fromRandom(random);
    const mac: base.Mac = .fromInt(options.first_mac.toInt() + each.device);
    const began_us = 1;
    var boot: Boot = .init(
        .{ .id = id, .mac = mac, .handle = prng.nextU64(), .token = @splat(0) },
        .{ .version_id = .zero, .loader_files = .{ .kernel = true, .initrd = true } },
        began_us,
        each.start_unix_ms,
    );
    boot.facts = .{
        .client_arch = 0,
        .vendor_class = .init("PXEClient:Arch:00000:UNDI:002001"),
        .user_class = .init(Boot.simulator_user_class),
        .ip = .init(127, 77, 0, 10 + each.device),
    };
    var teller: ReportWriter =
        .{ .boot = &boot, .prng = prng, .slowness = each.slowness, .now_us = began_us };
    tellLoading(&teller, each.fate);
    if (!boot.isOver()) tellSystem(&teller, each.fate);
    assert(boot.isOver());
    return boot;
}

fn tellLoading(teller: *ReportWriter, fate: BootOutcome) void {
    teller.dhcp(.rom);
    teller.pass(3_000);
    teller.tell(.nbp_begin);
    teller.pass(60_000);
    const blocks = nbp_size / nbp_block + 1;
    teller.tell(
        .{
            .nbp_traffic = .{
                .bytes_in = blocks * 4,
                .bytes_out = nbp_size,
                .packets_in = blocks,
                .packets_out = blocks,
            },
        },
    );
    if (fate == .tftp_timeout) {
        teller.pass(20 * std.time.us_per_s);
        return teller.tell(.{ .failed = .{ .cause = .tftp_timeout } });
    }
    teller.tell(.nbp_end);
    teller.pass(250_000);
    teller.dhcp(.ipxe);
    teller.file(.script, 420);
    teller.file(.kernel, 8 << 20);
    teller.file(.initrd, 6 << 20);
    teller.file(.start, core.loader.start_file.bytes.len);
    if (fate == .token_refused) {
        teller.pass(2 * std.time.us_per_s);
        teller.tell(.{ .failed = .{ .cause = .token_refused } });
    }
}

fn tellSystem(teller: *ReportWriter, fate: BootOutcome) void {
    teller.pass(2_400_000);
    teller.tell(.{ .stream_open = .{ .resumed = false, .mtu = 1500, .cipher = .aegis_128l } });
    const reads: u64 = if (fate == .ready) read_count else teller.prng.between(1, read_count - 1);
    for (0..reads) |index| {
        // Like recorded boots: short reads, with a pause now and then while services start.
        const size: u32 = if (index % 8 == 0) 131_072 else if (index % 8 < 4) 16_384 else 4_096;
        teller.pass(if (index % 167 == 166) 420_000 else 6_800);
        const misses = teller.prng.chance(1, 400);
        teller.tell(.{ .stream_read = .{ .size = size, .attempt = 0, .missing_fragments = 0 } });
        if (misses) teller.tell(
            .{ .stream_read = .{ .size = size, .attempt = 1, .missing_fragments = 1 } },
        );
        const fragments = size / fragment_size + 1;
        teller.tell(
            .{
                .stream_traffic = .{
                    .bytes_in = 36,
                    .bytes_out = size + fragments * 16,
                    .packets_in = 1,
                    .packets_out = fragments,
                },
            },
        );
    }
    switch (fate) {
        .ready => teller.tell(.{ .ready = .stream }),
        .superseded => teller.boot.supersede(teller.now_us),
        .silent => {
            teller.now_us += 1 + core.boot.phase.Phase.silenceLimitUs(.stage2).?;
            teller.boot.tick(teller.now_us, null);
        },
        .tftp_timeout, .token_refused => unreachable,
    }
}
