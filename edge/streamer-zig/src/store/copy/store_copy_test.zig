//! Tests of store_copy.zig: what it leaves, wherever it is interrupted and whatever is damaged.

const std = @import("std");
const base = @import("base");
const store_module = @import("../store.zig");

const block = store_module.block;
const Files = store_module.Files;
const ImageSource = store_module.image_source.ImageSource;
const Import = store_module.import.Import;
const LinuxFiles = store_module.LinuxFiles;
const Manifest = store_module.Manifest;
const Prng = base.Prng;
const Store = store_module.Store;
const StoreCopy = store_module.StoreCopy;
const Uuid = base.Uuid;
const Verification = store_module.verify.Verification;
const testing = std.testing;
const gpa = testing.allocator;
const io = testing.io;

/// Not a whole unit, and not a whole block.
const disk_size = 90 * block.block_size - 1024;

const Fixture = struct {
    tmp: testing.TmpDir,
    source_dir: std.Io.Dir,
    on: LinuxFiles,
    store: Store,
    target: LinuxFiles,
    target_dir: std.Io.Dir,
    image: [disk_size]u8,
    /// What the last copy has reported.
    findings: base.BoundedArray(StoreCopy.Finding, 16) = .empty,
    pulses: u32 = 0,
    /// The copy is canceled at this call of its pulse.
    cancel_at: ?u32 = null,

    fn init(fixture: *Fixture) !void {
        fixture.* = .{
            .tmp = testing.tmpDir(.{}),
            .source_dir = undefined,
            .on = undefined,
            .store = undefined,
            .target = undefined,
            .target_dir = undefined,
            .image = undefined,
        };
        fixture.source_dir = try fixture.tmp.dir.createDirPathOpen(
            io,
            "store",
            .{ .open_options = .{ .iterate = true } },
        );
        fixture.on = .fromFd(fixture.source_dir.handle);
        try Store.make(fixture.on.files(), .{ .id = idOf(1), .seed = @splat(5) });
        fixture.store = try .open(
            gpa,
            fixture.on.files(),
            .{ .cache_nodes = 16, .cache_units = 16, .file_size_max = 1 << 19 },
        );
        try fixture.newTarget();
        var prng: Prng = .init(3);
        for (&fixture.image, 0..) |*byte, at|
            byte.* = switch (at / block.block_size / 8 % 4) {
                // Holes, noise, and text that packs.
                0 => 0,
                1 => @intCast(prng.below(256)),
                else => @intCast('a' + at / 512 % 20),
            };
    }

    fn deinit(fixture: *Fixture) void {
        fixture.store.close(gpa);
        fixture.source_dir.close(io);
        fixture.target_dir.close(io);
        fixture.tmp.cleanup();
    }

    fn newTarget(fixture: *Fixture) !void {
        fixture.target_dir = try fixture.tmp.dir.createDirPathOpen(
            io,
            "target",
            .{ .open_options = .{ .iterate = true } },
        );
        fixture.target = .fromFd(fixture.target_dir.handle);
    }

    fn emptyTarget(fixture: *Fixture) !void {
        fixture.target_dir.close(io);
        try fixture.tmp.dir.deleteTree(io, "target");
        try fixture.newTarget();
    }

    fn import(fixture: *Fixture, id: Uuid, parent: Uuid) !Manifest {
        var change = try fixture.store.lockForChange();
        defer change.end();
        var kernel: Kernel = .{};
        const file = try store_module.boot_bundle.take(fixture.store.files, kernel.bytes());
        var running: Import = try .begin(.{
            .gpa = gpa,
            .io = io,
            .source = fixture.source(),
            .is_canceled = &never,
            .watch = .{ .context = fixture, .progress = progress, .monotonicUs = monotonicUs },
        }, &change, .{
            .version = id,
            .vdisk = idOf(2),
            .parent = parent,
            .number = 1,
            .pad = false,
            .stamp = undefined,
            .source_size = undefined,
            .root_level = undefined,
            .kernel = file,
        });
        defer running.deinit();
        return running.run(&change);
    }

    /// Changes the image and makes an update of it.
    fn update(fixture: *Fixture, id: Uuid, parent: Uuid) !Manifest {
        var prng: Prng = .init(id.bytes[0]);
        prng.fill(fixture.image[9 * block.block_size ..][0 .. 3 * block.block_size]);
        @memset(fixture.image[50 * block.block_size ..][0 .. 16 * block.block_size], 'u');
        return fixture.import(id, parent);
    }

    fn source(fixture: *const Fixture) ImageSource {
        return .{
            .context = @constCast(fixture),
            .vtable = &.{ .read = read, .nextData = nextData, .now = now },
            .size = disk_size,
            .is_positional = true,
        };
    }

    fn read(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
        _: *u64,
    ) store_module.image_source.ReadError!usize {
        const fixture: *const Fixture = @ptrCast(@alignCast(context));
        @memcpy(buffer, fixture.image[@intCast(offset)..][0..buffer.len]);
        return buffer.len;
    }

    fn nextData(_: *anyopaque, offset: u64) ?u64 {
        return offset;
    }

    fn now(_: *anyopaque) ?ImageSource.Now {
        return .{ .stamp = .{ .kind = .file, .inode = 1 }, .size = disk_size };
    }

    fn copy(fixture: *Fixture, files: Files, checks_all: bool) !StoreCopy.Result {
        fixture.findings = .empty;
        fixture.pulses = 0;
        var to = try fixture.store.openCopy(gpa, files);
        defer to.close(gpa);
        const result = try StoreCopy.run(gpa, &fixture.store, &to, .{
            .pulse = .{ .context = fixture, .call = pulse },
            .context = fixture,
            .report = report,
            .checks_all = checks_all,
        });
        try to.finishCopy();
        return result;
    }

    fn copyWhole(fixture: *Fixture) !StoreCopy.Result {
        var never_ending: EndingFiles = .init(&fixture.target, std.math.maxInt(u32), error.NoSpace);
        const result = try fixture.copy(never_ending.files(), false);
        try testing.expectEqual(0, result.problems);
        return result;
    }

    fn pulse(context: *anyopaque, _: u64) error{Canceled}!void {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        fixture.pulses += 1;
        if (fixture.cancel_at) |at| if (fixture.pulses >= at) return error.Canceled;
    }

    fn report(context: *anyopaque, finding: *const StoreCopy.Finding) void {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        fixture.findings.append(finding.*) catch unreachable;
    }

    /// Checks all versions of the copy; each must have its bytes and its kernel. @returns how many
    /// there are
    fn expectWhole(fixture: *Fixture) !u32 {
        const files = fixture.target.files();
        var to = fixture.store.openCopy(gpa, files) catch unreachable;
        defer to.close(gpa);
        var count: u32 = 0;
        var id: ?Uuid = null;
        while (try to.nextVersion(id)) |found| {
            id = found;
            count += 1;
            const manifest = try to.manifestOf(found);
            var verification: Verification = .init(gpa, &to);
            defer verification.deinit();
            verification.begin(&manifest);
            while (true) switch (try verification.step(1 << 20)) {
                .more => {},
                .problem => return error.Problem,
                .done => break,
            };
            try store_module.boot_bundle.check(files, &manifest.kernel.?);
        }
        return count;
    }

    /// Writes over a byte of the store, or of the copy.
    fn damage(files: Files, path: []const u8, offset: u64) !void {
        const handle = try files.open(path, .write);
        defer files.close(handle);
        var byte: [1]u8 = undefined;
        try testing.expect(try files.readWhole(handle, &byte, offset));
        try files.write(handle, &.{byte[0] ^ 0xff}, offset);
    }

    /// Returns where the block of the disk is.
    fn placeOf(fixture: *Fixture, manifest: *const Manifest, index: u64) !block.Location {
        var walker: store_module.tree_walk = .init(
            &fixture.store.nodes,
            manifest.root,
            manifest.rootLevel(),
        );
        while (walker.next()) |step| {
            if (step.level != null) try walker.enter(&step) else if (step.first == index)
                return step.entry.location;
        }
        return error.Absent;
    }
};

const Kernel = struct {
    const text: [70_000]u8 = @splat('k');

    fn bytes(kernel: *Kernel) store_module.boot_bundle.Bytes {
        return .{ .context = kernel, .read = read };
    }

    fn read(_: *anyopaque, buffer: []u8, offset: u64) error{SourceFailed}!usize {
        const rest = text[@intCast(offset)..];
        const count = @min(rest.len, buffer.len);
        @memcpy(buffer[0..count], rest[0..count]);
        return count;
    }
};

var never: std.atomic.Value(bool) = .init(false);
var clock_us: u64 = 0;

fn progress(_: *anyopaque, _: *const store_module.import.Progress) void {}

fn monotonicUs() u64 {
    clock_us += std.time.us_per_min;
    return clock_us;
}

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

/// Files that fail from one changing call on, as those of a killed process or of a full disk.
const EndingFiles = struct {
    vtable: Files.VTable,
    on: *LinuxFiles,

    threadlocal var below: *const Files.VTable = undefined;
    threadlocal var left: u32 = 0;
    threadlocal var problem: Files.Error = error.DiskFailed;

    fn init(on: *LinuxFiles, calls: u32, fails_with: Files.Error) EndingFiles {
        below = on.files().vtable;
        left = calls;
        problem = fails_with;
        var vtable = below.*;
        inline for (.{
            "create", "setSize", "write",   "sync",    "punch",
            "rename", "remove",  "makeDir", "syncDir",
        }) |name| @field(vtable, name) = Ending(name).call;
        return .{ .vtable = vtable, .on = on };
    }

    fn files(ending: *const EndingFiles) Files {
        return .{ .context = ending.on, .vtable = &ending.vtable };
    }

    fn Ending(comptime name: []const u8) type {
        const Call = @typeInfo(@FieldType(Files.VTable, name)).pointer.child;
        const types = @typeInfo(Call).@"fn".param_types;
        const Result = @typeInfo(Call).@"fn".return_type.?;
        return switch (types.len) {
            2 => struct {
                fn call(a: types[0].?, b: types[1].?) Result {
                    try count();
                    // The process is killed, not the power cut.
                    if (comptime std.mem.startsWith(u8, name, "sync")) return;
                    return @field(below, name)(a, b);
                }
            },
            3 => struct {
                fn call(a: types[0].?, b: types[1].?, c: types[2].?) Result {
                    try count();
                    return @field(below, name)(a, b, c);
                }
            },
            4 => struct {
                fn call(a: types[0].?, b: types[1].?, c: types[2].?, d: types[3].?) Result {
                    try count();
                    return @field(below, name)(a, b, c, d);
                }
            },
            else => unreachable,
        };
    }

    fn count() Files.Error!void {
        if (left == 0) return problem;
        left -= 1;
    }
};

test "a copy has the versions of its store, takes no more space, and the next one copies what is new" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first = try fixture.import(idOf(10), .zero);
    const whole = try fixture.copyWhole();
    try testing.expectEqual(1, whole.versions);
    try testing.expectEqual(1, try fixture.expectWhole());
    var files = [_]Files{ fixture.on.files(), fixture.target.files() };
    var sizes: [2]u64 = .{ 0, 0 };
    const names = [_][]const u8{ "extents/000001", "nodes/000001" };
    for (&files, &sizes) |on, *size| for (names) |name| {
        const handle = try on.open(name, .read);
        defer on.close(handle);
        size.* += try on.allocated(handle);
    };
    try testing.expect(sizes[1] <= sizes[0]);
    const second = try fixture.update(idOf(11), first.version);
    const more = try fixture.copyWhole();
    try testing.expectEqual(2, more.versions);
    try testing.expectEqual(1, more.copied_versions);
    // 19 changed blocks, of which 16 shrink, their units, and nodes of two levels.
    try testing.expect(more.copied_bytes > 3 * block.block_size);
    try testing.expect(more.copied_bytes < 14 * block.block_size);
    try testing.expectEqual(2, try fixture.expectWhole());
    const none = try fixture.copyWhole();
    try testing.expectEqual(0, none.copied_bytes);
    try testing.expectEqual(0, none.copied_versions);
    // It is a store, with the same roots, which nobody changes before that is allowed.
    var store: Store = try .open(gpa, fixture.target.files(), .{ .cache_nodes = 16 });
    defer store.close(gpa);
    try testing.expectEqual(second.root.hash, (try store.manifestOf(second.version)).root.hash);
    try testing.expectError(error.NotFound, store.lockForChange());
    try store.allowChanges();
    var change = try store.lockForChange();
    defer change.end();
    _ = try change.key();
    try testing.expectEqual(second.counter, try change.highestCounter());
}

test "a version that was deleted leaves the copy too, and frees its space there" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first = try fixture.import(idOf(10), .zero);
    const second = try fixture.update(idOf(11), first.version);
    _ = try fixture.copyWhole();
    {
        var change = try fixture.store.lockForChange();
        defer change.end();
        try change.delete(first.version);
    }
    const result = try fixture.copyWhole();
    try testing.expectEqual(1, result.removed_versions);
    try testing.expectEqual(first.version, fixture.findings.constSlice()[0].removed);
    try testing.expectEqual(1, try fixture.expectWhole());
    const place = try fixture.placeOf(&second, 10);
    const files = fixture.target.files();
    var name: Files.Name = undefined;
    const handle = try files.open(fixture.store.data.nameOf(place.file, &name), .read);
    defer files.close(handle);
    const size = try files.size(handle);
    try testing.expect(try files.allocated(handle) <= size);
}

test "an interrupted copy has whole versions at every moment, and the next one completes it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first = try fixture.import(idOf(10), .zero);
    _ = try fixture.update(idOf(11), first.version);
    var calls: u32 = 0;
    var before: u32 = 0;
    while (true) : (calls += 1) {
        try fixture.emptyTarget();
        const problem: Files.Error = if (calls % 2 == 0) error.NoSpace else error.DiskFailed;
        var ending: EndingFiles = .init(&fixture.target, calls, problem);
        if (fixture.copy(ending.files(), false)) |result| {
            try testing.expectEqual(2, result.versions);
            break;
        } else |err| try testing.expectEqual(problem, err);
        const count = try fixture.expectWhole();
        try testing.expect(count >= before and count <= 2);
        before = count;
        // It is a store only when it is complete.
        if (Store.open(gpa, fixture.target.files(), .{})) |opened| {
            var store = opened;
            store.close(gpa);
            try testing.expectEqual(2, count);
        } else |err| try testing.expectEqual(error.NotAStore, err);
        _ = try fixture.copyWhole();
        try testing.expectEqual(2, try fixture.expectWhole());
    }
    try testing.expect(calls > 20 and before == 2);
}

test "a copy that is interrupted in an update keeps the versions before it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first = try fixture.import(idOf(10), .zero);
    const second = try fixture.update(idOf(11), first.version);
    var name: Files.Name = undefined;
    const manifest = store_module.manifest.fileName(second.version, &name);
    const files = fixture.on.files();
    var calls: u32 = 0;
    while (true) : (calls += 1) {
        try fixture.emptyTarget();
        try files.rename(manifest, "hidden");
        try testing.expectEqual(1, (try fixture.copyWhole()).versions);
        try files.rename("hidden", manifest);
        var ending: EndingFiles = .init(&fixture.target, calls, error.NoSpace);
        const is_done = if (fixture.copy(ending.files(), false)) |_| true else |_| false;
        const count = try fixture.expectWhole();
        try testing.expect(count == 2 or count == 1 and !is_done);
        if (is_done) break;
        try testing.expectEqual(2, (try fixture.copyWhole()).versions);
        try testing.expectEqual(2, try fixture.expectWhole());
    }
    try testing.expect(calls > 8);
}

test "a copy that is asked to end does so between two pieces, and continues there" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    _ = try fixture.import(idOf(10), .zero);
    fixture.cancel_at = 2;
    try testing.expectError(error.Canceled, fixture.copy(fixture.target.files(), false));
    try testing.expectEqual(0, try fixture.expectWhole());
    fixture.cancel_at = null;
    const rest = try fixture.copyWhole();
    try fixture.emptyTarget();
    try testing.expect(rest.copied_bytes < (try fixture.copyWhole()).copied_bytes);
}

test "damage in the store is named, keeps a version out, and nothing that the copy has is lost" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first = try fixture.import(idOf(10), .zero);
    _ = try fixture.copyWhole();
    const second = try fixture.update(idOf(11), first.version);
    _ = try fixture.update(idOf(12), second.version);
    // Of the first version, which the copy has already, and of the second one, plain and packed;
    // the third one shares the packed one.
    const places = [_]struct { *const Manifest, u64 }{
        .{ &first, 20 },
        .{ &second, 10 },
        .{ &second, 55 },
    };
    for (places) |each| {
        const place = try fixture.placeOf(each[0], each[1]);
        try testing.expectEqual(each[1] != 10, place.is_packed);
        var name: Files.Name = undefined;
        const path = fixture.store.data.nameOf(place.file, &name);
        try Fixture.damage(fixture.on.files(), path, place.offset() + 40);
    }
    const result = try fixture.copy(fixture.target.files(), false);
    try testing.expectEqual(2, result.problems);
    try testing.expectEqual(1, result.versions);
    try testing.expectEqual(1, try fixture.expectWhole());
    var is_named = false;
    for (fixture.findings.constSlice()) |finding| switch (finding) {
        .damaged => |found| {
            try testing.expect(!found.version.eql(first.version));
            is_named = is_named or found.version.eql(second.version) and
                found.problem.at == 10 * block.block_size and found.problem.side == .source;
        },
        .damaged_more => {},
        else => return error.Unexpected,
    };
    try testing.expect(is_named);
    // Repaired.
    for (places[1..]) |each| {
        const place = try fixture.placeOf(each[0], each[1]);
        var name: Files.Name = undefined;
        const path = fixture.store.data.nameOf(place.file, &name);
        try Fixture.damage(fixture.on.files(), path, place.offset() + 40);
    }
    try testing.expectEqual(3, (try fixture.copyWhole()).versions);
    try testing.expectEqual(3, try fixture.expectWhole());
}

test "damage in the copy is found when all of it is checked, and replaced from the store" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first = try fixture.import(idOf(10), .zero);
    _ = try fixture.copyWhole();
    var damages: u32 = 0;
    for ([_][]const u8{ "extents/000001", "nodes/000001" }) |path| {
        const handle = try fixture.target.files().open(path, .read);
        const size = try fixture.target.files().size(handle);
        fixture.target.files().close(handle);
        // The first byte of each fourth part.
        for (0..4) |part| {
            const at = size / 4 * part / block.block_size * block.block_size + 50;
            try Fixture.damage(fixture.target.files(), path, at);
            damages += 1;
            const result = try fixture.copy(fixture.target.files(), true);
            try testing.expectEqual(0, result.problems);
            try testing.expectEqual(1, try fixture.expectWhole());
        }
    }
    try testing.expectEqual(8, damages);
    const place = try fixture.placeOf(&first, 20);
    var name: Files.Name = undefined;
    const path = fixture.store.data.nameOf(place.file, &name);
    try Fixture.damage(fixture.target.files(), path, place.offset());
    // Not seen without the check, and seen by everybody who reads it.
    try testing.expectEqual(0, (try fixture.copyWhole()).copied_bytes);
    try testing.expectError(error.Problem, fixture.expectWhole());
}
