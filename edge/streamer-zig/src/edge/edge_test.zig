//! Tests what a running edge does by the clock, with a real store.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const store = @import("store");
const Edge = @import("edge.zig");
const testing = std.testing;
const gpa = testing.allocator;
const io = testing.io;

const second = std.time.us_per_s;
const version_id: base.Uuid = .fromRandom(@splat(3));
const image_size = 256 << 10;
/// Blocks of the disk that a boot has read.
const learned_blocks = 8;

const EdgeFixture = struct {
    tmp: testing.TmpDir,
    box: host.StateBox,
    edge: Edge,
    instant_ms: [1]u64,
    schedules: [1]core.uplink.desired_state.Schedule,
    versions: [1]core.uplink.desired_state.Version,
    vdisks: [1]core.uplink.desired_state.Vdisk,

    var never: std.atomic.Value(bool) = .init(false);

    /// Makes an edge that has a version, has learned from a boot of it, and knows one schedule.
    fn init(site: *EdgeFixture) !void {
        site.tmp = testing.tmpDir(.{ .iterate = true });
        try site.importVersion();
        site.edge = .{ .init = undefined, .terminal = undefined, .options = .{} };
        site.edge.io.store_findings = null;
        site.edge.io.profiles = try .create(gpa, io, site.tmp.dir.handle);
        site.edge.boots.profiles = try .init(gpa, &site.edge.io, .{});
        site.learn();
        site.schedules = .{.{
            .id = .zero,
            .action = "power_on",
            .power = "wake_on_lan",
            .ratePerMinute = 60,
            .devices = &.{},
            .instants = &site.instant_ms,
        }};
        site.versions[0].id = version_id;
        site.vdisks[0].versions = &site.versions;
        site.box.state.schedules = &site.schedules;
        site.box.state.vdisks = &site.vdisks;
        site.edge.state = &site.box;
    }

    fn deinit(site: *EdgeFixture) void {
        site.edge.boots.profiles.deinit();
        site.edge.io.profiles.?.destroy();
        site.tmp.cleanup();
    }

    fn importVersion(site: *EdgeFixture) !void {
        var on: store.LinuxFiles = .fromFd(site.tmp.dir.handle);
        try store.Store.make(on.files(), .{ .id = .fromRandom(@splat(1)), .seed = @splat(5) });
        var opened: store.Store = try .open(gpa, on.files(), .{ .cache_nodes = 16 });
        defer opened.close(gpa);
        try site.tmp.dir.writeFile(
            io,
            .{ .sub_path = "imports/image", .data = &@as([image_size]u8, @splat('b')) },
        );
        const image = try site.tmp.dir.openFile(io, "imports/image", .{});
        var source: store.image_source.FdSource = try .fromFd(image.handle, &never);
        defer source.close();
        var change = try opened.lockForChange();
        defer change.end();
        var import: store.import.Import = try .begin(.{
            .gpa = gpa,
            .io = io,
            .source = source.source(),
            .is_canceled = &never,
            .watch = .{
                .context = site,
                .progress = ignoreProgress,
                .monotonicUs = host.sys.monotonicUs,
            },
        }, &change, .{
            .version = version_id,
            .vdisk = .fromRandom(@splat(2)),
            .parent = .zero,
            .number = 1,
            .pad = false,
            .stamp = undefined,
            .source_size = undefined,
            .root_level = undefined,
        });
        defer import.deinit();
        _ = try import.run(&change);
    }

    fn ignoreProgress(_: *anyopaque, _: *const store.import.Progress) void {}

    fn learn(site: *EdgeFixture) void {
        const profiles = &site.edge.boots.profiles;
        const boot: core.boot.Boot = .init(.{
            .id = .fromRandom(@splat(8)),
            .mac = .{ .bytes = .{ 2, 0xbf, 0, 0, 0, 1 } },
            .handle = 1,
            .token = @splat(0),
        }, .{ .version_id = version_id }, 0, 0);
        profiles.begin(&boot, .device_ram);
        profiles.onRead(&.{
            .boot_id = boot.identity.id,
            .version_id = version_id,
            .version = .v3,
            .to = .{ .ip = .zero, .port = 0 },
            .session_id = 1,
            .request_id = 1,
            .kind = .demand,
            .offset = 0,
            .length = learned_blocks * 4096,
            .fragment_size = 1440,
            .overhead = 32,
            .write_cache = .device_ram,
            .ranges = .{},
            .first = false,
            .repeated = false,
            .bytes_out = learned_blocks * 4096,
            .packets_out = 1,
        });
        profiles.finish(boot.identity.id);
        site.edge.io.profiles.?.doAll();
        profiles.takeEvents();
    }

    /// Runs a tick of the edge's loop; returns the bytes that were read ahead into memory.
    fn tick(site: *EdgeFixture, now_us: u64) u64 {
        const profiles = site.edge.io.profiles.?;
        const before = profiles.warmedBytes();
        Edge.tick(&site.edge, undefined, now_us);
        profiles.doAll();
        return profiles.warmedBytes() - before;
    }

    /// Moves the schedule's only wake-up to `seconds` from now.
    fn wakeIn(site: *EdgeFixture, seconds: u64) void {
        site.instant_ms = .{host.sys.unixMs() + seconds * std.time.ms_per_s};
    }
};

test "before a schedule wakes machines, the next tick reads into memory what their boots will need, and does so once" {
    var site: EdgeFixture = undefined;
    try site.init();
    defer site.deinit();
    const warmed = learned_blocks * 4096;
    // What the edge does when it gets a state is done, and the memory has been used for something
    // else since.
    site.edge.wantProfiles(1);
    site.edge.io.profiles.?.doAll();
    try testing.expectEqual(warmed, site.edge.io.profiles.?.warmedBytes());
    const later_us = 3600 * second;

    site.wakeIn(3600);
    try testing.expectEqual(0, site.tick(later_us));
    site.wakeIn(100);
    try testing.expectEqual(warmed, site.tick(later_us + second));
    try testing.expectEqual(0, site.tick(later_us + 2 * second));
    // An instant in the past wakes nobody.
    site.instant_ms = .{host.sys.unixMs() - 1};
    try testing.expectEqual(0, site.tick(2 * later_us));
}
