//! Tests store_worker.zig: a real store and real processes; nobody answers, so nothing is reported.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store_module = @import("store");
const sys = @import("../sys.zig");
const DataDir = @import("../files/data_dir.zig");
const LayerHold = @import("../stream/layer_hold.zig");
const KeyRotation = @import("key_rotation.zig");
const Repairer = @import("../repair/repairer.zig");
const SitePeers = @import("../difference/site_peers.zig");
const StoreWorker = @import("store_worker.zig");
const linux = std.os.linux;

const testing = std.testing;
const Order = core.uplink.store_job.Order;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

/// Replaces our own program: it lists a version, makes another, finds one damaged, and collects
/// without end.
const script =
    \\#!/bin/sh
    \\version='{"version":"02020202-0202-4202-8202-020202020202","sizeBytes":4096,"manifest":{"root":"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=","counter":1},"ownBytes":1,"sharedBytes":2}'
    \\case $2 in
    \\list) echo "$version";;
    \\import) echo $$ > "$5/pid.new"; mv "$5/pid.new" "$5/pid"; while ! test -e "$5/read"; do sleep 0.01; done; echo "$version";;
    \\merge) echo 'not a line of ours'; echo '{"progress":{"positionBytes":1,"sizeBytes":2}}'; echo run >> "$5/runs"; echo "$version";;
    \\verify) test -e "$5/whole" && exit 0; echo '{"version":"02020202-0202-4202-8202-020202020202","atByte":8192,"problem":"a block is damaged"}'; echo '{"error":"a version is damaged"}'; exit 1;;
    \\gc) echo $$ > "$5/pid.new"; mv "$5/pid.new" "$5/pid"; sleep 1000;;
    \\compress) echo '{"progress":{"positionBytes":1,"sizeBytes":2}}'; while ! test -e "$5/read"; do sleep 0.01; done; echo run >> "$5/compressed";;
    \\delete) exit 1;;
    \\pack) echo run >> "$5/packs"; printf abc > "$7"; cp "$5/list" "$7.pieces";;
    \\seal) test -e "$5/free" || { touch "$5/free"; echo '{"error":"somebody has it"}'; exit 4; };;
    \\esac
    \\
;

const Fixture = struct {
    tmp: testing.TmpDir,
    arena: std.heap.ArenaAllocator,
    data: DataDir,
    rotation: KeyRotation,
    store_dir: std.Io.Dir,
    worker: *StoreWorker,
    program: [64]u8,
    loop_says: LayerHold.Answer = .held,
    now_ms: u64 = 1,

    fn init(fixture: *Fixture) !void {
        fixture.loop_says = .held;
        fixture.now_ms = 1;
        fixture.tmp = testing.tmpDir(.{ .iterate = true });
        fixture.arena = .init(testing.allocator);
        const options: std.Io.Dir.CreateFileOptions = .{ .permissions = .executable_file };
        var file = try fixture.tmp.dir.createFile(testing.io, "program", options);
        try file.writeStreamingAll(testing.io, script);
        file.close(testing.io);
        try fixture.tmp.dir.createDirPath(testing.io, "store");
        fixture.store_dir = try fixture.tmp.dir.openDir(testing.io, "store", .{});
        var on: store_module.LinuxFiles = .fromFd(fixture.store_dir.handle);
        try store_module.Store.make(on.files(), .{ .id = uuid(1), .seed = @splat(2) });
        var path: [64]u8 = undefined;
        fixture.data = try DataDir.open(
            testing.io,
            try std.mem.print(&path, ".zig-cache/tmp/{s}/data", .{&fixture.tmp.sub_path}),
        );
        try fixture.start();
    }

    /// Starts as the edge does, also after a kill -9.
    fn start(fixture: *Fixture) !void {
        const key = try base.Ed25519.KeyPair.generateDeterministic(@splat(3));
        fixture.rotation = .init(testing.io, &fixture.data, uuid(9), key);
        fixture.worker = try StoreWorker.create(fixture.arena.allocator(), .{
            .io = testing.io,
            .data = &fixture.data,
            .client_options = undefined,
            .rotation = &fixture.rotation,
            .store_fd = fixture.store_dir.handle,
            .epoch = 1,
        });
        fixture.worker.program = try std.mem.print(
            &fixture.program,
            ".zig-cache/tmp/{s}/program",
            .{&fixture.tmp.sub_path},
        );
    }

    /// Its processes end with it.
    fn kill(fixture: *Fixture) void {
        for (std.enums.values(core.uplink.store_job.Queue)) |queue| fixture.worker.stopWork(queue);
        if (fixture.worker.list) |*child| child.stop();
        fixture.worker.differences.stop();
        sys.close(fixture.worker.wake_fd);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.kill();
        fixture.store_dir.close(testing.io);
        fixture.data.close();
        fixture.arena.deinit();
        fixture.tmp.cleanup();
    }

    fn turn(fixture: *Fixture) void {
        const worker = fixture.worker;
        worker.takeOrders();
        worker.lookForStore(1);
        worker.releaseHomes(fixture.now_ms);
        worker.begin(fixture.now_ms);
        // Plays the packet loop, with no device that writes.
        if (worker.hold.request()) |subject| worker.hold.setAnswer(subject, fixture.loop_says);
        worker.keep();
        worker.wait();
        worker.hear();
    }

    fn untilOver(fixture: *Fixture, id: base.Uuid) core.uplink.store_jobs.Job {
        while (true) {
            fixture.turn();
            const job = fixture.worker.jobs.find(id) orelse continue;
            if (job.stage == .done or job.stage == .failed) {
                fixture.worker.keep();
                return job.*;
            }
        }
    }

    fn text(fixture: *Fixture, name: []const u8) ![]const u8 {
        return fixture.store_dir.readFileAlloc(
            testing.io,
            name,
            fixture.arena.allocator(),
            .limited(1024),
        );
    }
};

test "a job is done once by a separate process, also when the edge is killed after it and starts again" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const orders = [_]Order{
        .{
            .id = uuid(4),
            .kind = "merge",
            .versionId = uuid(2),
            .intoVersionId = uuid(3),
            .number = 2,
        },
        .{ .id = uuid(5), .kind = "delete", .versionId = uuid(2) },
        .{ .id = uuid(6), .kind = "unheard_of" },
    };
    fixture.worker.setOrders(&orders, &.{});
    const merged = fixture.untilOver(uuid(4));
    try testing.expectEqual(.done, merged.stage);
    try testing.expectEqual(2, merged.total_bytes);
    try testing.expect(
        std.mem.startsWith(u8, merged.made.constSlice(), "{\"versionId\":\"02020202-"),
    );
    const deleted = fixture.untilOver(uuid(5));
    try testing.expectEqualStrings(
        "its process ended before the job was done",
        deleted.message.constSlice(),
    );
    try testing.expectEqual(.failed, fixture.untilOver(uuid(6)).stage);
    fixture.kill();
    try fixture.start();
    fixture.worker.setOrders(&orders, &.{});
    fixture.worker.takeOrders();
    try testing.expectEqual(.done, fixture.worker.jobs.find(uuid(4)).?.stage);
    try testing.expectEqual(null, fixture.worker.jobs.next(.changes, &orders, 0));
    try testing.expectEqualStrings("run\n", try fixture.text("runs"));
}

test "a job that is taken back is killed, and the next one starts" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.worker.setOrders(&.{.{ .id = uuid(4), .kind = "gc" }}, &.{});
    const pid = while (true) {
        fixture.turn();
        const said = fixture.text("pid") catch continue;
        break try std.fmt.parseInt(i32, std.mem.trim(u8, said, "\n"), 10);
    };
    fixture.worker.setOrders(&.{
        .{
            .id = uuid(5),
            .kind = "merge",
            .versionId = uuid(2),
            .intoVersionId = uuid(3),
            .number = 2,
        },
    }, &.{});
    try testing.expectEqual(.done, fixture.untilOver(uuid(5)).stage);
    try testing.expectEqual(.SRCH, linux.errno(linux.kill(pid, @fromBackingInt(0))));
    try testing.expectEqual(null, fixture.worker.jobs.find(uuid(4)));
}

test "an import may take as long as it needs, other work is done in the meantime, and either is taken back alone" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const long: Order =
        .{
            .id = uuid(4),
            .kind = "import",
            .vdiskId = uuid(8),
            .versionId = uuid(2),
            .number = 2,
            .sourcePath = "imports/a.raw",
        };
    const merge: Order =
        .{
            .id = uuid(5),
            .kind = "merge",
            .versionId = uuid(2),
            .intoVersionId = uuid(3),
            .number = 3,
        };
    var second = long;
    second.id = uuid(6);
    fixture.worker.setOrders(&.{ long, second, merge }, &.{});
    try testing.expectEqual(.done, fixture.untilOver(uuid(5)).stage);
    try testing.expectEqual(.running, fixture.worker.jobs.find(uuid(4)).?.stage);
    try testing.expectEqual(.waiting, fixture.worker.jobs.find(uuid(6)).?.stage);
    const collect: Order = .{ .id = uuid(7), .kind = "gc" };
    fixture.worker.setOrders(&.{ long, collect }, &.{});
    while (!fixture.worker.jobs.isRunning(uuid(7))) fixture.turn();
    fixture.worker.setOrders(&.{long}, &.{});
    fixture.turn();
    try testing.expect(fixture.worker.works.get(.changes) == null);
    try testing.expect(fixture.worker.jobs.isRunning(uuid(4)));
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = "read", .data = "" });
    const made = fixture.untilOver(uuid(4));
    try testing.expectEqual(.done, made.stage);
    try testing.expect(made.made.count > 0);
}

test "versions are packed again once, when nobody changes any; jobs come first" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const findings = &fixture.worker.findings;
    while (fixture.worker.inventory.count == 0) fixture.turn();
    fixture.turn();
    fixture.now_ms += 600_001;
    while (findings.packing_total.load(.monotonic) == 0) fixture.turn();
    try testing.expectEqual(1, findings.packing_done.load(.monotonic));
    const order: Order =
        .{
            .id = uuid(4),
            .kind = "merge",
            .versionId = uuid(2),
            .intoVersionId = uuid(3),
            .number = 3,
        };
    fixture.worker.setOrders(&.{order}, &.{});
    try testing.expectEqual(.done, fixture.untilOver(uuid(4)).stage);
    try testing.expectEqual(0, findings.packing_total.load(.monotonic));
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = "read", .data = "" });
    fixture.turn();
    try testing.expectError(error.FileNotFound, fixture.text("compressed"));
    fixture.now_ms += 600_001;
    while (findings.replaced.load(.monotonic) == 0) fixture.turn();
    try testing.expectEqualStrings("run\n", try fixture.text("compressed"));
    const done_hash = fixture.worker.upkeep.done_hash;
    try testing.expect(done_hash != 0);
    fixture.kill();
    try fixture.start();
    try testing.expectEqual(done_hash, fixture.worker.upkeep.done_hash);
}

test "what a device writes is not sealed or deleted while the device is heard, and nobody opens it in the meantime" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const worker = fixture.worker;
    worker.setOrders(&.{.{ .id = uuid(4), .kind = "delete", .versionId = uuid(2) }}, &.{});
    fixture.loop_says = .written;
    while (worker.hold.answer != .written) fixture.turn();
    fixture.turn();
    // It may be shutting down: the job waits for a minute at most.
    try testing.expectEqual(.waiting, worker.jobs.find(uuid(4)).?.stage);
    worker.begin(60_001);
    const refused = worker.jobs.find(uuid(4)).?;
    try testing.expectEqualStrings(
        "its device still runs from it: shut the device down first",
        refused.message.constSlice(),
    );
    try testing.expectEqual(null, worker.hold.request());
    // The next one waits until the layer is closed, which is free again when the work ends.
    fixture.loop_says = .waiting;
    worker.setOrders(&.{.{ .id = uuid(5), .kind = "delete", .versionId = uuid(2) }}, &.{});
    fixture.turn();
    fixture.turn();
    try testing.expectEqual(.waiting, worker.jobs.find(uuid(5)).?.stage);
    fixture.loop_says = .held;
    _ = fixture.untilOver(uuid(5));
    try testing.expectEqual(null, worker.hold.request());
    // A job that is taken back leaves nothing held.
    fixture.loop_says = .waiting;
    worker.setOrders(&.{.{ .id = uuid(6), .kind = "delete", .versionId = uuid(2) }}, &.{});
    while (worker.hold.request() == null) fixture.turn();
    worker.setOrders(&.{}, &.{});
    fixture.turn();
    try testing.expectEqual(null, worker.hold.request());
}

const abc_pieces: core.difference.Pieces = .{ .size = 3 };

test "a difference is packed once and described, also after a start, and removed when nobody needs it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const list = core.difference.Pieces.digestOf("abc");
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = "list", .data = &list });
    var order: Order =
        .{ .id = uuid(4), .kind = "pack", .versionId = uuid(2), .differenceId = uuid(3) };
    fixture.worker.setOrders(&.{order}, &.{});
    const job = fixture.untilOver(uuid(4));
    try testing.expectEqual(.done, job.stage);
    try testing.expectEqual(
        core.uplink.difference_order.Packed{
            .size = 3,
            .list_sha256 = core.difference.Pieces.digestOf(&list),
        },
        job.packed_difference.?,
    );
    try testing.expectEqualStrings("packed a difference of 3 B", job.message.constSlice());
    fixture.kill();
    try fixture.start();
    order.id = uuid(5);
    fixture.worker.setOrders(&.{order}, &.{});
    try testing.expectEqual(.done, fixture.untilOver(uuid(5)).stage);
    try testing.expectEqualStrings("run\n", try fixture.text("packs"));
    const file = "differences/" ++ uuid(3).toText();
    fixture.worker.setOrders(&.{}, &.{uuid(3)});
    fixture.worker.takeOrders();
    try testing.expectEqualStrings("abc", try fixture.text(file));
    // A damaged file is removed, so that the next job packs again.
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = file, .data = "abd" });
    order.id = uuid(6);
    fixture.worker.setOrders(&.{order}, &.{});
    try testing.expectEqual(.failed, fixture.untilOver(uuid(6)).stage);
    order.id = uuid(7);
    fixture.worker.setOrders(&.{order}, &.{});
    try testing.expectEqual(.done, fixture.untilOver(uuid(7)).stage);
    fixture.worker.setOrders(&.{}, &.{});
    fixture.worker.takeOrders();
    try testing.expectError(error.FileNotFound, fixture.text(file));
}

test "what an earlier process has fetched is imported, and a piece that differs is not" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = "read", .data = "" });
    try fixture.store_dir.createDirPath(testing.io, "differences");
    const list = core.difference.Pieces.digestOf("abc");
    const digits = std.fmt.bytesToHex(core.difference.Pieces.digestOf(&list), .lower);
    const part = "differences/" ++ uuid(3).toText() ++ ".part";
    const pieces = "differences/" ++ uuid(3).toText() ++ ".pieces";
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = part, .data = "abc" });
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = pieces, .data = &list });
    var order: Order = .{
        .id = uuid(4),
        .kind = "fetch",
        .versionId = uuid(2),
        .differenceId = uuid(3),
        .differenceSizeBytes = abc_pieces.size,
        .differenceListSha256 = &digits,
        .manifest = .{ .root = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=", .counter = 1 },
    };
    fixture.worker.setOrders(&.{order}, &.{});
    const job = fixture.untilOver(uuid(4));
    try testing.expectEqual(.done, job.stage);
    try testing.expect(job.made.count > 0);
    const file = "differences/" ++ uuid(3).toText();
    try testing.expectEqualStrings("abc", try fixture.text(file));
    // Another process has damaged it; nobody has it to be asked.
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = file, .data = "abd" });
    fixture.kill();
    try fixture.start();
    order.id = uuid(5);
    fixture.worker.setOrders(&.{order}, &.{});
    const failed = fixture.untilOver(uuid(5));
    try testing.expectEqualStrings(
        "No edge and no control plane is left to ask for the difference.",
        failed.message.constSlice(),
    );
}

test "a job that finds the store in use waits, and is done when it is free" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const worker = fixture.worker;
    worker.setOrders(&.{
        .{
            .id = uuid(4),
            .kind = "seal",
            .versionId = uuid(2),
            .parentVersionId = uuid(3),
            .number = 2,
        },
    }, &.{});
    while (true) {
        fixture.turn();
        const job = worker.jobs.find(uuid(4)) orelse continue;
        if (job.not_before_ms > 0) break;
    }
    const job = worker.jobs.find(uuid(4)).?;
    try testing.expectEqual(.waiting, job.stage);
    try testing.expectEqualStrings("somebody has it", job.message.constSlice());
    fixture.now_ms = job.not_before_ms;
    try testing.expectEqual(.done, fixture.untilOver(uuid(4)).stage);
}

test "the store's contents are listed, and versions found damaged are counted until they are right again" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    while (!fixture.worker.inventory.is_known) fixture.turn();
    try testing.expectEqual(1, fixture.worker.findings.figures().versions);
    try testing.expectEqual(0, fixture.worker.inventory.page_from.?);
    // Nothing else is to be done, and the delay after a start is over.
    while (fixture.worker.findings.figures().damaged == 0) fixture.turn();
    try testing.expectEqual(null, fixture.worker.inventory.nextToCheck(sys.unixMs()));
    // Also after a start.
    fixture.kill();
    try fixture.start();
    while (!fixture.worker.inventory.is_known) fixture.turn();
    try testing.expectEqual(1, fixture.worker.findings.figures().damaged);
}

test "damage that a verification finds is reported for repair, and verified again afterwards" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var peers: SitePeers = .{ .io = testing.io };
    const worker = fixture.worker;
    const repairer: *Repairer =
        try .create(testing.allocator, &peers, worker.path, worker.wake_fd);
    defer repairer.destroy();
    worker.repairer = repairer;
    while (!fixture.worker.inventory.is_known) fixture.turn();
    while (fixture.worker.findings.figures().damaged == 0) fixture.turn();
    while (fixture.worker.works.get(.images) != null) fixture.turn();
    try testing.expectEqual(1, repairer.reported.count);
    const reported = repairer.reported.constSlice()[0];
    try testing.expect(reported.version.eql(uuid(2)) and reported.index == 2);
    // As its thread does with it.
    repairer.reported.clear();
    repairer.mended.appendAssumeCapacity(uuid(2));
    try fixture.store_dir.writeFile(testing.io, .{ .sub_path = "whole", .data = "" });
    while (fixture.worker.findings.figures().damaged > 0) fixture.turn();
    try testing.expectEqual(null, repairer.takeMended());
}

test "a version that comes or goes by hand is listed soon, before the next list is due" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const worker = fixture.worker;
    while (!worker.inventory.is_known) fixture.turn();
    const due_ms = worker.next_list_ms;
    try testing.expect(due_ms > 60_000);
    fixture.now_ms = 20_000;
    fixture.turn();
    try testing.expectEqual(due_ms, worker.next_list_ms);
    // Again if the file system's clock has not moved since the previous look.
    while (worker.next_list_ms == due_ms) {
        fixture.now_ms += 20_000;
        var name: [32]u8 = undefined;
        try fixture.store_dir.createDirPath(
            testing.io,
            try std.mem.print(&name, "versions/{d}", .{fixture.now_ms}),
        );
        fixture.turn();
    }
    try testing.expect(fixture.now_ms < due_ms);
}

test "an edge gives up a device's writes once it begins none, and not while it keeps some" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const worker = fixture.worker;
    const letGo = struct {
        fn of(number: u8) Order {
            return .{ .id = uuid(number), .kind = "release_home", .deviceId = uuid(7) };
        }
    };
    fixture.loop_says = .waiting;
    worker.setOrders(&.{letGo.of(4)}, &.{});
    for (0..3) |_| fixture.turn();
    try testing.expectEqual(.waiting, worker.jobs.find(uuid(4)).?.stage);
    fixture.loop_says = .held;
    try testing.expectEqual(.done, fixture.untilOver(uuid(4)).stage);
    try testing.expectEqual(null, worker.hold.request());
    var on: store_module.LinuxFiles = .fromFd(fixture.store_dir.handle);
    const files = on.files();
    files.makeDir("layers") catch |err| try testing.expectEqual(error.Exists, err);
    var dir: store_module.files.Name = undefined;
    const zeros: [4096]u8 = @splat(0);
    const below: store_module.BlockSource =
        .{ .context = @constCast(&zeros), .vtable = &.{ .read = readZeros }, .size = zeros.len };
    const layer_dir = store_module.device_layers.dirOf(uuid(2), &dir);
    var layer: store_module.WriteLayer = try .create(testing.allocator, files, layer_dir, .{
        .layer_id = uuid(3),
        .binding = .{
            .class = .maintenance,
            .device_id = uuid(7),
            .version_id = uuid(2),
            .disk_size = zeros.len,
        },
        .limit_bytes = 4096,
        .sequence = 0,
    }, below);
    layer.close(testing.allocator);
    worker.setOrders(&.{letGo.of(5)}, &.{});
    const kept = fixture.untilOver(uuid(5));
    try testing.expectEqual(.failed, kept.stage);
    try testing.expect(std.mem.startsWith(
        u8,
        kept.message.constSlice(),
        "it still keeps writes of the device",
    ));
}

fn readZeros(
    _: *anyopaque,
    buffer: []u8,
    _: u64,
) error{ BeyondTheEnd, ReadFailed, Damaged, Lost }!void {
    @memset(buffer, 0);
}

test "jobs for an edge without a store say what they wait for, and start when there is one" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.store_dir.rename("bootfarm-store", fixture.store_dir, "away", testing.io);
    fixture.worker.setOrders(&.{.{ .id = uuid(4), .kind = "delete", .versionId = uuid(2) }}, &.{});
    fixture.worker.takeOrders();
    fixture.worker.lookForStore(1);
    const message = fixture.worker.jobs.find(uuid(4)).?.message.constSlice();
    try testing.expect(std.mem.find(u8, message, "The edge has no store yet.") != null);
    try testing.expect(std.mem.find(u8, message, "vdisk init --beside-files --store /") != null);
    try testing.expect(fixture.worker.jobs.isDue(0));
    try fixture.store_dir.rename("away", fixture.store_dir, "bootfarm-store", testing.io);
    fixture.worker.next_look_ms = 0;
    try testing.expectEqualStrings(
        "its process ended before the job was done",
        fixture.untilOver(uuid(4)).message.constSlice(),
    );
}
