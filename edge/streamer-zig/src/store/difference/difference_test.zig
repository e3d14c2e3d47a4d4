//! Tests of difference.zig and pack.zig: what one store packs, another takes with the same root and
//! the same bytes, and nothing else.

const std = @import("std");
const base = @import("base");
const store_module = @import("../store.zig");

const block = store_module.block;
const block_size = block.block_size;
const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Difference = store_module.Difference;
const format = store_module.difference_format;
const Import = store_module.import.Import;
const ImageSource = store_module.image_source.ImageSource;
const LinuxFiles = store_module.LinuxFiles;
const Manifest = store_module.Manifest;
const OpenVersion = store_module.OpenVersion;
const Pack = store_module.pack.Pack;
const PackedPart = store_module.PackedPart;
const Store = store_module.Store;
const TargetError = store_module.@"export".TargetError;
const Uuid = base.Uuid;
const testing = std.testing;
const io = testing.io;

var never: std.atomic.Value(bool) = .init(false);

fn idOf(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

/// A file in memory.
const MemoryFile = struct {
    bytes: []const u8,
    state: u64 = 1,

    fn source(file: *MemoryFile) ImageSource {
        return .{
            .context = file,
            .vtable = &.{ .read = read, .nextData = nextData, .now = now },
            .size = file.bytes.len,
            .is_positional = true,
        };
    }

    fn read(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
        _: *u64,
    ) store_module.image_source.ReadError!usize {
        const file: *const MemoryFile = @ptrCast(@alignCast(context));
        const rest = file.bytes[@min(file.bytes.len, @as(usize, @intCast(offset)))..];
        const count = @min(rest.len, buffer.len);
        @memcpy(buffer[0..count], rest[0..count]);
        return count;
    }

    fn nextData(_: *anyopaque, offset: u64) ?u64 {
        return offset;
    }

    fn now(context: *anyopaque) ?ImageSource.Now {
        const file: *const MemoryFile = @ptrCast(@alignCast(context));
        const stamp: store_module.image_source.Stamp = .{ .kind = .file, .inode = file.state };
        return .{ .stamp = stamp, .size = file.bytes.len };
    }
};

/// A store in a folder of its own.
const Site = struct {
    tmp: testing.TmpDir,
    on: LinuxFiles,
    store: Store,
    is_canceled: std.atomic.Value(bool) = .init(false),
    cancel_at: u64 = std.math.maxInt(u64),

    var clock_us: u64 = 0;

    fn init(site: *Site, number: u8) !void {
        site.* = .{ .tmp = testing.tmpDir(.{}), .on = undefined, .store = undefined };
        site.on = .fromFd(site.tmp.dir.handle);
        try Store.make(site.on.files(), .{ .id = idOf(number), .seed = @splat(number) });
        site.store = try .open(testing.allocator, site.on.files(), .{ .cache_nodes = 16 });
    }

    fn deinit(site: *Site) void {
        site.store.close(testing.allocator);
        site.tmp.cleanup();
    }

    fn options(site: *Site, source: ImageSource) Import.Options {
        return .{
            .gpa = testing.allocator,
            .io = io,
            .source = source,
            .is_canceled = &site.is_canceled,
            .watch = .{ .context = site, .progress = progress, .monotonicUs = monotonicUs },
        };
    }

    fn progress(context: *anyopaque, done: *const store_module.import.Progress) void {
        const site: *Site = @ptrCast(@alignCast(context));
        if (done.position >= site.cancel_at) site.is_canceled.store(true, .monotonic);
    }

    fn monotonicUs() u64 {
        clock_us += std.time.us_per_min;
        return clock_us;
    }

    /// Makes a version of an image; `parent` may be zeros.
    fn importImage(site: *Site, bytes: []const u8, made: Checkpoint) !Manifest {
        var file: MemoryFile = .{ .bytes = bytes };
        var change = try site.store.lockForChange();
        defer change.end();
        var import: Import = try .begin(site.options(file.source()), &change, made);
        defer import.deinit();
        return import.run(&change);
    }

    fn bootFile(site: *Site, bytes: []const u8) !store_module.manifest.BootFile {
        var writer: store_module.boot_bundle.FileWriter = try .begin(site.on.files());
        defer writer.end();
        try writer.append(bytes);
        return writer.finish();
    }

    /// The caller frees the file.
    fn pack(site: *Site, version: Uuid, before: ?Uuid) ![]u8 {
        return site.continuePack(version, before, "");
    }

    /// Packs behind what a killed run has left. The caller frees the file.
    fn continuePack(site: *Site, version: Uuid, before: ?Uuid, left: []const u8) ![]u8 {
        var made = try site.store.openVersion(version);
        defer made.close();
        var known: ?OpenVersion = if (before) |id| try site.store.openVersion(id) else null;
        defer if (known) |*opened| opened.close();
        var sink: MemorySink = .{};
        errdefer sink.bytes.deinit(testing.allocator);
        const header: format.Header =
            .of(&made.manifest, if (known) |*opened| &opened.manifest else null);
        const part = try partOf(left, &header);
        const size: usize = if (part) |*kept| @intCast(kept.size) else 0;
        try sink.bytes.appendSlice(testing.allocator, left[0..size]);
        var running: Pack = .{
            .store = &site.store,
            .version = &made,
            .before = if (known) |*opened| opened else null,
            .sink = .{ .context = &sink, .write = MemorySink.write },
            .is_canceled = &site.is_canceled,
            .watch = .{ .context = site, .progress = ignore },
            .done = .{ .size = made.manifest.disk_size },
            .part = part,
        };
        try running.run(testing.allocator);
        try testing.expectEqual(made.manifest.disk_size, running.done.position);
        return sink.bytes.toOwnedSlice(testing.allocator);
    }

    fn ignore(_: *anyopaque, _: *const store_module.pack.Progress) void {}

    fn take(site: *Site, bytes: []const u8) !Manifest {
        var file: MemoryFile = .{ .bytes = bytes };
        return site.takeFile(&file);
    }

    /// Takes a difference, or continues to.
    fn takeFile(site: *Site, file: *MemoryFile) !Manifest {
        var difference: Difference = try .open(testing.allocator, file.source());
        defer difference.close(testing.allocator);
        var import: Import = blk: {
            var change = try site.store.lockForChange();
            defer change.end();
            const given = site.options(difference.source());
            if (Checkpoint.read(site.store.files, difference.header.version)) |checkpoint|
                break :blk try .proceed(given, &change, checkpoint)
            else |_| {}
            try difference.takeBootFiles(site.store.files, &never);
            break :blk try .begin(given, &change, difference.checkpoint());
        };
        defer import.deinit();
        import.read() catch |err| return if (difference.fault) |fault| fault else err;
        var change = try site.store.lockForChange();
        defer change.end();
        return import.finish(&change);
    }

    fn expectDisk(site: *Site, id: Uuid, expected: []const u8) !void {
        var version = try site.store.openVersion(id);
        defer version.close();
        const source = version.reader.source();
        try testing.expectEqual(expected.len, source.size);
        const bytes = try testing.allocator.alloc(u8, expected.len);
        defer testing.allocator.free(bytes);
        try source.read(bytes, 0);
        try testing.expect(std.mem.eql(u8, expected, bytes));
    }

    fn expectNothing(site: *Site, id: Uuid) !void {
        try testing.expectError(error.NotFound, site.store.manifestOf(id));
        Checkpoint.remove(site.store.files, id) catch |err| if (err != error.NoImport) return err;
    }
};

fn partOf(left: []const u8, header: *const format.Header) !?PackedPart {
    var file: MemoryFile = .{ .bytes = left };
    const buffer = try testing.allocator.create([format.raw_size_max]u8);
    defer testing.allocator.destroy(buffer);
    return PackedPart.find(&file.source(), header, buffer);
}

const MemorySink = struct {
    bytes: std.ArrayList(u8) = .empty,

    fn write(context: *anyopaque, bytes: []const u8) TargetError!void {
        const sink: *MemorySink = @ptrCast(@alignCast(context));
        sink.bytes.appendSlice(testing.allocator, bytes) catch return error.NoSpace;
    }
};

fn asked(version: Uuid, parent: Uuid) Checkpoint {
    return .{
        .version = version,
        .vdisk = idOf(90),
        .parent = parent,
        .number = 7,
        .name = @FieldType(Checkpoint, "name").fromSlice("Büro") catch unreachable,
        .note = @FieldType(Checkpoint, "note").fromSlice("with the new driver") catch unreachable,
        .command_line = @FieldType(Checkpoint, "command_line").fromSlice("quiet") catch unreachable,
        .pad = false,
        .stamp = undefined,
        .source_size = undefined,
        .root_level = undefined,
    };
}

/// The same version, wherever it is; only its place and the store's key differ.
fn expectSame(expected: *const Manifest, found: *const Manifest) !void {
    const bytes = [_][format.header_size]u8{
        format.Header.of(expected, null).encode(),
        format.Header.of(found, null).encode(),
    };
    try testing.expectEqualSlices(u8, &bytes[0], &bytes[1]);
}

/// Every fifth block is zeros, and half of each 20 compresses.
fn imageOf(size: usize) ![]u8 {
    const bytes = try testing.allocator.alloc(u8, size);
    var prng: base.Prng = .init(3);
    for (0..size) |at| {
        const index = at / block_size;
        bytes[at] = if (index % 5 == 1)
            0
        else if (index % 20 < 10) @truncate(index +% at / 16 +% 1) else @truncate(prng.nextU32());
    }
    return bytes;
}

/// Scattered blocks, a long run, zeros over data, data over zeros, and the last sector.
fn changeImage(bytes: []u8) void {
    for (0..40) |index| bytes[(index * 25 + 3) * block_size + index] +%= 1;
    for (bytes[300 * block_size .. 700 * block_size], 0..) |*byte, at| byte.* +%= @truncate(at | 1);
    @memset(bytes[720 * block_size ..][0 .. 30 * block_size], 0);
    @memset(bytes[201 * block_size ..][0..block_size], 'z');
    bytes[bytes.len - 1] +%= 1;
}

test "a version is taken with the same root and bytes, over nothing, its parent, or another version" {
    var sites: [2]Site = undefined;
    for (&sites, 1..) |*site, number| try site.init(@intCast(number));
    defer for (&sites) |*site| site.deinit();
    const here, const there = .{ &sites[0], &sites[1] };
    const bytes = try imageOf((4 << 20) + 512);
    defer testing.allocator.free(bytes);
    const kernel: [format.raw_size_max + 5]u8 = @splat('k');
    var first = asked(idOf(3), .zero);
    first.kernel = try here.bootFile(&kernel);
    first.initrd = try here.bootFile("initramfs");
    const made = try here.importImage(bytes, first);
    const whole = try here.pack(idOf(3), null);
    defer testing.allocator.free(whole);
    const taken = try there.take(whole);
    try expectSame(&made, &taken);
    try there.expectDisk(idOf(3), bytes);
    for ([_]?store_module.manifest.BootFile{ taken.kernel, taken.initrd }) |file|
        try store_module.boot_bundle.check(there.store.files, &file.?);

    changeImage(bytes);
    var second = asked(idOf(4), idOf(3));
    second.kernel = first.kernel;
    second.initrd = try here.bootFile("another initramfs");
    const update = try here.importImage(bytes, second);
    const change = try here.pack(idOf(4), idOf(3));
    defer testing.allocator.free(change);
    try expectSame(&update, &try there.take(change));
    try there.expectDisk(idOf(4), bytes);
    // What the parent has is left out: what changed is less than half.
    try testing.expect(change.len < whole.len / 2);

    // A version whose parent the other store never had, over a version of another vDisk.
    const other = try imageOf(bytes.len);
    defer testing.allocator.free(other);
    changeImage(other);
    @memset(other[0 .. 100 * block_size], 'o');
    var unrelated = asked(idOf(5), .zero);
    unrelated.vdisk = idOf(91);
    for (&sites) |*site| {
        unrelated.kernel = null;
        _ = try site.importImage(other, unrelated);
    }
    bytes[5 * block_size] ^= 1;
    _ = try here.importImage(bytes, asked(idOf(6), idOf(4)));
    bytes[9 * block_size] ^= 1;
    const last = try here.importImage(bytes, asked(idOf(7), idOf(6)));
    const over_other = try here.pack(idOf(7), idOf(5));
    defer testing.allocator.free(over_other);
    try expectSame(&last, &try there.take(over_other));
    try there.expectDisk(idOf(7), bytes);
    // The next version that is made there has a higher counter than all that were taken.
    const next = try there.importImage(other, asked(idOf(8), .zero));
    try testing.expect(next.counter > last.counter);
}

test "a pack that was cut anywhere continues behind its last whole frame and ends with the same bytes" {
    var here: Site = undefined;
    try here.init(1);
    defer here.deinit();
    const bytes = try imageOf((4 << 20) + 512);
    defer testing.allocator.free(bytes);
    var first = asked(idOf(3), .zero);
    first.kernel = try here.bootFile("kernel");
    const made = try here.importImage(bytes, first);
    changeImage(bytes);
    _ = try here.importImage(bytes, asked(idOf(4), idOf(3)));
    const whole = try here.pack(idOf(3), null);
    defer testing.allocator.free(whole);
    const header: format.Header = .of(&made, null);
    var ends: base.BoundedArray(usize, 8) = .empty;
    var at: usize = format.header_size;
    while (at < whole.len) {
        const head: format.FrameHead = try .decode(whole[at..][0..format.frame_head_size]);
        at += format.frame_head_size + head.packed_size;
        if (head.kind == .blocks) try ends.append(at);
    }
    try testing.expect(ends.count > 3);
    // Until the first frame of blocks is whole, nothing is kept.
    for ([_]usize{ 0, 100, format.header_size, ends.buffer[0] - 1 }) |cut|
        try testing.expectEqual(null, try partOf(whole[0..cut], &header));
    for (ends.constSlice()) |end| for ([_]usize{ end, end + 63 }) |cut| {
        const left = whole[0..@min(cut, whole.len)];
        try testing.expectEqual(end, (try partOf(left, &header)).?.size);
        const again = try here.continuePack(idOf(3), null, left);
        defer testing.allocator.free(again);
        try testing.expectEqualSlices(u8, whole, again);
    };
    // A disk or a power cut has changed a frame: those before it are kept.
    const damaged = try testing.allocator.dupe(u8, whole);
    defer testing.allocator.free(damaged);
    damaged[ends.buffer[1] + 1000] ^= 1;
    try testing.expectEqual(ends.buffer[1], (try partOf(damaged, &header)).?.size);
    const again = try here.continuePack(idOf(3), null, damaged);
    defer testing.allocator.free(again);
    try testing.expectEqualSlices(u8, whole, again);
    // A part of another difference is no part of this one.
    const change = try here.pack(idOf(4), idOf(3));
    defer testing.allocator.free(change);
    const over = try here.continuePack(idOf(4), idOf(3), whole);
    defer testing.allocator.free(over);
    try testing.expectEqualSlices(u8, change, over);
    for ([_]usize{ change.len / 2, change.len - 1 }) |cut| {
        const rest = try here.continuePack(idOf(4), idOf(3), change[0..cut]);
        defer testing.allocator.free(rest);
        try testing.expectEqualSlices(u8, change, rest);
    }
}

test "a difference is refused if any byte of it is changed, if it is cut, and where its base is another" {
    var sites: [2]Site = undefined;
    for (&sites, 1..) |*site, number| try site.init(@intCast(number));
    defer for (&sites) |*site| site.deinit();
    const here, const there = .{ &sites[0], &sites[1] };
    const bytes = try imageOf(1 << 20);
    defer testing.allocator.free(bytes);
    _ = try here.importImage(bytes, asked(idOf(3), .zero));
    const whole = try here.pack(idOf(3), null);
    defer testing.allocator.free(whole);
    bytes[7 * block_size] ^= 1;
    bytes[bytes.len - 1] ^= 1;
    @memset(bytes[10 * block_size ..][0 .. 9 * block_size], 0);
    var update = asked(idOf(4), idOf(3));
    update.kernel = try here.bootFile("kernel");
    _ = try here.importImage(bytes, update);
    const change = try here.pack(idOf(4), idOf(3));
    defer testing.allocator.free(change);
    // Without the base.
    try testing.expectError(error.ParentMissing, there.take(change));
    try there.expectNothing(idOf(4));
    _ = try there.take(whole);
    const is_tried = try placesOf(change);
    defer testing.allocator.free(is_tried);
    for (0..change.len) |at| {
        if (!is_tried[at]) continue;
        change[at] ^= 0x10;
        defer change[at] ^= 0x10;
        if (there.take(change)) |_| return error.TakenAnyway else |err| switch (err) {
            error.NotADifference, error.Damaged, error.Malformed, error.Truncated => {},
            else => return err,
        }
        try there.expectNothing(idOf(4));
    }
    for (0..change.len) |size| {
        if (!is_tried[size]) continue;
        if (there.take(change[0..size])) |_| return error.TakenAnyway else |err| switch (err) {
            error.NotADifference, error.Truncated => {},
            else => return err,
        }
        try there.expectNothing(idOf(4));
    }
    const longer = try std.mem.concat(testing.allocator, u8, &.{ change, "x" });
    defer testing.allocator.free(longer);
    try testing.expectError(error.Malformed, there.take(longer));
    try there.expectNothing(idOf(4));
    _ = try there.take(change);
}

/// The bytes of a file worth changing: the header and the heads of frames, and some of the rest. A
/// digest covers each.
fn placesOf(bytes: []const u8) ![]bool {
    const places = try testing.allocator.alloc(bool, bytes.len);
    for (places, 0..) |*place, at| place.* = at < 8 or at % 509 == 0;
    var at: usize = format.header_size;
    while (at < bytes.len) {
        for (places[at..][0..format.frame_head_size], 0..) |*place, index| place.* = index % 7 == 0;
        const head: format.FrameHead = try .decode(bytes[at..][0..format.frame_head_size]);
        at += format.frame_head_size + head.packed_size;
    }
    return places;
}

test "a difference of intact frames must result in its root, over a base of the same bytes" {
    var sites: [2]Site = undefined;
    for (&sites, 1..) |*site, number| try site.init(@intCast(number));
    defer for (&sites) |*site| site.deinit();
    const here, const there = .{ &sites[0], &sites[1] };
    const bytes = try imageOf(1 << 20);
    defer testing.allocator.free(bytes);
    for (&sites) |*site| _ = try site.importImage(bytes, asked(idOf(3), .zero));
    bytes[0] ^= 1;
    _ = try here.importImage(bytes, asked(idOf(4), idOf(3)));
    const change = try here.pack(idOf(4), idOf(3));
    defer testing.allocator.free(change);
    var header: format.Header = try .decode(change[0..format.header_size]);
    header.root[5] ^= 1;
    change[0..format.header_size].* = header.encode();
    try testing.expectError(error.OtherRoot, there.take(change));
    try there.expectNothing(idOf(4));
    header.root[5] ^= 1;
    header.base_root[5] ^= 1;
    change[0..format.header_size].* = header.encode();
    try testing.expectError(error.OtherBase, there.take(change));
    try there.expectNothing(idOf(4));
    header.base_root[5] ^= 1;
    header.disk_size += 512;
    change[0..format.header_size].* = header.encode();
    try testing.expectError(error.OtherSize, there.take(change));
    header.disk_size -= 512;
    // A kernel that the difference does not have.
    header.kernel = .{ .hash = @splat(1), .size = 5 };
    change[0..format.header_size].* = header.encode();
    try testing.expectError(error.BootFileMissing, there.take(change));
    try there.expectNothing(idOf(4));
}

test "an interrupted import of a difference continues, and only with the same file" {
    var sites: [2]Site = undefined;
    for (&sites, 1..) |*site, number| try site.init(@intCast(number));
    defer for (&sites) |*site| site.deinit();
    const here, const there = .{ &sites[0], &sites[1] };
    const bytes = try imageOf(12 << 20);
    defer testing.allocator.free(bytes);
    for (&sites) |*site| _ = try site.importImage(bytes, asked(idOf(3), .zero));
    for (bytes, 0..) |*byte, at| if (at / block_size % 3 == 0) {
        byte.* +%= 1;
    };
    const made = try here.importImage(bytes, asked(idOf(4), idOf(3)));
    const change = try here.pack(idOf(4), idOf(3));
    defer testing.allocator.free(change);
    var file: MemoryFile = .{ .bytes = change };
    for ([_]u64{ 1, 3 << 20, (7 << 20) + block_size }) |at| {
        there.cancel_at = at;
        try testing.expectError(error.Canceled, there.takeFile(&file));
        there.is_canceled.store(false, .monotonic);
    }
    file.state += 1;
    there.cancel_at = std.math.maxInt(u64);
    try testing.expectError(error.SourceChanged, there.takeFile(&file));
    file.state -= 1;
    try expectSame(&made, &try there.takeFile(&file));
    try there.expectDisk(idOf(4), bytes);
}

test "a damaged block or kernel is not packed" {
    var site: Site = undefined;
    try site.init(1);
    defer site.deinit();
    const bytes = try imageOf(1 << 20);
    defer testing.allocator.free(bytes);
    var made = asked(idOf(3), .zero);
    made.kernel = try site.bootFile("kernel");
    _ = try site.importImage(bytes, made);
    var name: store_module.files.Name = undefined;
    const files = site.store.files;
    const kernel = try files.open(store_module.boot_bundle.nameOf(&made.kernel.?, &name), .write);
    defer files.close(kernel);
    try files.write(kernel, "K", 0);
    try testing.expectError(error.BootFileDamaged, site.pack(idOf(3), null));
    try files.write(kernel, "k", 0);
    const extent = try files.open(site.store.data.nameOf(1, &name), .write);
    defer files.close(extent);
    const at = try files.size(extent) / 2;
    var byte: [1]u8 = undefined;
    _ = try files.read(extent, &byte, at);
    try files.write(extent, &.{byte[0] ^ 1}, at);
    try testing.expectError(error.Damaged, site.pack(idOf(3), null));
}

test "the golden files give their versions, with the roots that an independent program computed" {
    var site: Site = undefined;
    try site.init(1);
    defer site.deinit();
    const first = try site.take(@embedFile("difference_whole"));
    var disk: [3 * block_size + 512]u8 = @splat('d');
    @memset(disk[0..block_size], 'a');
    @memset(disk[block_size..][0..block_size], 0);
    @memset(disk[2 * block_size ..][0..block_size], 'c');
    try site.expectDisk(idOf(3), &disk);
    try testing.expectEqualStrings("Büro", first.name.constSlice());
    try testing.expectEqualStrings("quiet splash", first.command_line.constSlice());
    try testing.expectEqualStrings("the golden one", first.note.constSlice());
    try testing.expectEqual(41, first.counter);
    try testing.expectEqual(1_700_000_000_001, first.created_unix_ms);
    try store_module.boot_bundle.check(site.store.files, &first.kernel.?);
    const second = try site.take(@embedFile("difference_update"));
    @memset(disk[0..block_size], 0);
    @memset(disk[block_size..][0..block_size], 'B');
    @memset(disk[3 * block_size ..], 'D');
    try site.expectDisk(idOf(4), &disk);
    try testing.expect(second.parent.eql(idOf(3)) and second.kernel != null);
    // What is packed here says the same in its header.
    const again = try site.pack(idOf(4), idOf(3));
    defer testing.allocator.free(again);
    const golden = @embedFile("difference_update")[0..format.header_size];
    // A store without an organization.
    var header: format.Header = try .decode(again[0..format.header_size]);
    header.organization = idOf(1);
    try testing.expectEqualSlices(u8, golden, &header.encode());
}
