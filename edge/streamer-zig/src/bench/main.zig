//! Measures the vDisk store against plain files in one process; prints one JSON object. The caller
//! makes the directory, a new one for each run:
//!
//!     zig build store-bench -- reads DIR --mib N --versions N --reads N
//!     zig build store-bench -- difference DIR --mib N
//!     zig build store-bench -- decay DIR --mib N --merges N --reads N
//!     zig build store-bench -- large DIR --extents N
//!     zig build store-bench -- codec FILE --mib N
//!     zig build store-bench -- writes-nbd SOCKET --mib N      (a qemu-nbd)
//!     zig build store-bench -- writes-stream WORDS --mib N    (an edge; words of its boot script)

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const linux = std.os.linux;

const NbdDevice = @import("nbd_device.zig").NbdDevice;
const nowUs = @import("nbd_device.zig").nowUs;
const writes = @import("writes.zig");
const Appender = store_module.Appender;
const block = store_module.block;
const LinuxFiles = store_module.LinuxFiles;
const Prng = base.Prng;
const Store = store_module.Store;
const StoreFile = store_module.StoreFile;
const TreeBuilder = store_module.TreeBuilder;
const Uuid = base.Uuid;

const usage =
    \\usage: store-bench reads DIR --mib N --versions N --reads N --rounds N
    \\       store-bench difference DIR --mib N
    \\       store-bench decay DIR --mib N --merges N --reads N
    \\       store-bench large DIR --extents N
    \\       store-bench codec FILE --mib N
    \\       store-bench writes-nbd SOCKET --mib N
    \\       store-bench writes-stream WORDS --mib N
    \\
;
const read_size = 32 << 10;

const Numbers = struct {
    mib: u64 = 1024,
    versions: u8 = 32,
    merges: u16 = 200,
    reads: u64 = 20_000,
    extents: u64 = 25_000_000,
    rounds: u64 = 5,
};

pub fn main(init: std.process.Init) !u8 {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    if (arguments.len < 3) return usageError();
    var numbers: Numbers = .{};
    var index: usize = 3;
    while (index + 1 < arguments.len) : (index += 2) {
        const value = arguments[index + 1];
        inline for (@typeInfo(Numbers).@"struct".field_names) |name| if (std.mem.eql(
            u8,
            arguments[index],
            "--" ++ name,
        )) {
            @field(numbers, name) = std.fmt.parseInt(@FieldType(Numbers, name), value, 10) catch
                return usageError();
        };
    }
    var buffer: [4096]u8 = undefined;
    var out: std.Io.File.Writer = .initStreaming(.stdout(), init.io, &buffer);
    if (std.mem.cutPrefix(u8, arguments[1], "writes-")) |way| {
        var device: NbdDevice = if (std.mem.eql(u8, way, "nbd"))
            try .connect(arguments[2])
        else if (std.mem.eql(u8, way, "stream"))
            try .ofStream(arguments[2], arguments[0])
        else
            return usageError();
        defer device.close();
        try writes.measure(&device, numbers.mib << 20, &out.interface);
        try out.interface.flush();
        return 0;
    }
    if (std.mem.eql(u8, arguments[1], "codec")) {
        const arena = init.arena.allocator();
        const bytes = try arena.alloc(u8, @intCast(numbers.mib << 20));
        const size = try std.Io.Dir.cwd().readFile(init.io, arguments[2], bytes);
        try @import("codec.zig").measure(arena, size, &out.interface);
        try out.interface.flush();
        return 0;
    }
    var on = try LinuxFiles.open(arguments[2]);
    defer on.close();
    const gpa = std.heap.smp_allocator;
    Store.make(on.files(), .{ .id = .fromRandom(@splat(1)), .seed = @splat(2) }) catch |err|
        if (err != error.Exists) return err;
    if (std.mem.eql(u8, arguments[1], "reads")) {
        try measureReads(gpa, on.files(), &numbers, arguments[2], &out.interface);
    } else if (std.mem.eql(u8, arguments[1], "difference")) {
        try measureDifference(gpa, on.files(), &numbers, &out.interface);
    } else if (std.mem.eql(u8, arguments[1], "decay")) {
        try measureDecay(gpa, on.files(), &numbers, &out.interface);
    } else if (std.mem.eql(u8, arguments[1], "large")) {
        try measureLarge(gpa, on.files(), &numbers, &out.interface);
    } else return usageError();
    try out.interface.flush();
    return 0;
}

fn usageError() u8 {
    std.debug.print(usage, .{});
    return 2;
}

/// A version being made.
const VersionDraft = struct {
    store: *Store,
    change: store_module.store_dir.Change,
    data: Appender,
    nodes: Appender,
    builder: TreeBuilder,

    fn begin(
        draft: *VersionDraft,
        gpa: std.mem.Allocator,
        store: *Store,
        root: block.Entry,
        disk_size: u64,
    ) !void {
        draft.* = .{
            .store = store,
            .change = try store.lockForChange(),
            .data = try .init(gpa, &store.data, store.options.file_size_max),
            .nodes = try .init(gpa, &store.nodes, store.options.file_size_max),
            .builder = undefined,
        };
        draft.builder = .init(&store.cache, &draft.nodes, root, block.blockCount(disk_size));
    }

    fn putRandom(draft: *VersionDraft, prng: *Prng, index: u64) !void {
        var bytes: block.Block = undefined;
        prng.fill(&bytes);
        try draft.builder.put(
            index,
            .{ .hash = block.hashOf(&bytes), .location = try draft.data.append(&bytes) },
        );
    }

    fn commit(draft: *VersionDraft, id: Uuid, parent: Uuid, disk_size: u64) !void {
        const root = try draft.builder.finish();
        try draft.data.sync();
        try draft.nodes.sync();
        try draft.change.commit(&.{
            .store = draft.store.id,
            .organization = .zero,
            .vdisk = .fromRandom(@splat(2)),
            .version = id,
            .parent = parent,
            .number = 1,
            .incarnation = 0,
            .counter = 1,
            .created_unix_ms = 0,
            .disk_size = disk_size,
            .root = root,
        });
    }

    fn end(draft: *VersionDraft, gpa: std.mem.Allocator) void {
        draft.data.deinit(gpa);
        draft.nodes.deinit(gpa);
        draft.change.end();
    }
};

fn idOf(number: u64) Uuid {
    var bytes: [16]u8 = @splat(0);
    std.mem.writeInt(u64, bytes[8..], number, .big);
    return .fromRandom(bytes);
}

/// Random reads of 32 KiB: from a raw file, from a base, and from the last version of a chain in
/// which each version has changed one percent.
fn measureReads(
    gpa: std.mem.Allocator,
    files: store_module.Files,
    numbers: *const Numbers,
    dir: []const u8,
    out: *std.Io.Writer,
) !void {
    const disk_size = numbers.mib << 20;
    const count = block.blockCount(disk_size);
    var store: Store = try .open(gpa, files, .{});
    defer store.close(gpa);
    var prng: Prng = .init(1);
    for (1..@as(u64, numbers.versions) + 1) |number| {
        if (store.manifestOf(idOf(number))) |_| continue else |_| {}
        const root = if (number ==
            1) block.Entry.zeros else (try store.manifestOf(idOf(number - 1))).root;
        var draft: VersionDraft = undefined;
        try draft.begin(gpa, &store, root, disk_size);
        defer draft.end(gpa);
        if (number == 1) {
            for (0..count) |index| try draft.putRandom(&prng, index);
        } else for (0..count / 100) |step| try draft.putRandom(&prng, step * 100 + prng.below(100));
        try draft.commit(idOf(number), if (number == 1) .zero else idOf(number - 1), disk_size);
    }
    if (files.open("raw", .read)) |handle|
        files.close(handle)
    else |_|
        try writeRaw(&store, idOf(numbers.versions), files, disk_size);
    var path: [4096]u8 = undefined;
    var raw = try StoreFile.open(try std.mem.print(&path, "{s}/raw", .{dir}), .disk);
    defer raw.close();
    try out.print("{{\"mib\":{d},\"versions\":{d},\"reads\":{d},\"rounds\":[", .{
        numbers.mib, numbers.versions, numbers.reads,
    });
    for (0..numbers.rounds) |round| {
        if (round > 0) try out.writeAll(",");
        try out.writeAll("{");
        for ([_]bool{ true, false }) |is_cold| {
            const name = if (is_cold) "cold" else "warm";
            const reads = if (is_cold) numbers.reads / 10 else numbers.reads;
            var chain = try store.openVersion(idOf(numbers.versions));
            defer chain.close();
            var bottom = try store.openVersion(idOf(1));
            defer bottom.close();
            const seed = round * 2 + @intFromBool(is_cold);
            const raw_us = try timed(&Raw{ .file = &raw }, seed, reads, disk_size, is_cold);
            // After a start: nodes must be read, and blocks checked.
            if (is_cold) store.cache.clear();
            const bottom_us = try timed(&bottom.reader.source(), seed, reads, disk_size, is_cold);
            if (is_cold) store.cache.clear();
            const chain_us = try timed(&chain.reader.source(), seed, reads, disk_size, is_cold);
            try out.print(
                "\"{s}\":{{\"reads\":{d},\"rawUs\":{d},\"baseUs\":{d},\"chainUs\":{d}}}{s}",
                .{
                    name,                      reads, raw_us, bottom_us, chain_us,
                    if (is_cold) "," else "}",
                },
            );
        }
    }
    try out.writeAll("]}\n");
}

const Raw = struct {
    file: *const StoreFile,

    pub fn read(raw: *const Raw, buffer: []u8, offset: u64) !void {
        try raw.file.read(buffer, offset);
    }
};

fn writeRaw(store: *Store, id: Uuid, files: store_module.Files, disk_size: u64) !void {
    var version = try store.openVersion(id);
    defer version.close();
    const handle = try files.create("raw");
    defer files.close(handle);
    var buffer: [1 << 20]u8 = undefined;
    var offset: u64 = 0;
    while (offset < disk_size) : (offset += buffer.len) {
        try version.reader.source().read(&buffer, offset);
        try files.write(handle, &buffer, offset);
    }
    try files.sync(handle);
}

/// Times of the reads in µs. Warm: all were read once before. Cold: the page cache is empty.
fn timed(source: anytype, seed: u64, reads: u64, disk_size: u64, is_cold: bool) !u64 {
    if (is_cold) dropPageCache() else _ = try readAll(source, seed, reads, disk_size);
    return readAll(source, seed, reads, disk_size);
}

fn readAll(source: anytype, seed: u64, reads: u64, disk_size: u64) !u64 {
    var prng: Prng = .init(seed);
    var buffer: [read_size]u8 = undefined;
    const begin_us = nowUs();
    for (0..reads) |_| try source.read(&buffer, prng.below(disk_size / read_size) * read_size);
    return nowUs() - begin_us;
}

/// Needs root.
fn dropPageCache() void {
    linux.sync();
    const rc = linux.open("/proc/sys/vm/drop_caches", .{ .ACCMODE = .WRONLY }, 0);
    if (linux.errno(rc) != .SUCCESS) return;
    _ = linux.write(@intCast(rc), "3", 1);
    _ = linux.close(@intCast(rc));
}

/// Merging an update that differs from its base by this much, with its blocks written.
fn measureDifference(
    gpa: std.mem.Allocator,
    files: store_module.Files,
    numbers: *const Numbers,
    out: *std.Io.Writer,
) !void {
    const disk_size: u64 = 100 << 30;
    var store: Store = try .open(gpa, files, .{});
    defer store.close(gpa);
    var prng: Prng = .init(1);
    const count = (numbers.mib << 20) / block.block_size;
    for ([_]u64{ 1, 2 }) |number| {
        const root = if (number == 1) block.Entry.zeros else (try store.manifestOf(idOf(1))).root;
        var draft: VersionDraft = undefined;
        try draft.begin(gpa, &store, root, disk_size);
        defer draft.end(gpa);
        for (0..if (number == 1) 1 else count) |index| try draft.putRandom(&prng, index * 7);
        try draft.commit(idOf(number), if (number == 1) .zero else idOf(1), disk_size);
    }
    const before = try sizeOf(&store);
    dropPageCache();
    const begin_us = nowUs();
    {
        var change = try store.lockForChange();
        defer change.end();
        try store_module.merge.merge(
            &change,
            .{ .of = idOf(2), .onto = null, .version = idOf(3), .number = 3, .created_unix_ms = 0 },
        );
    }
    const merge_us = nowUs() - begin_us;
    try out.print("{{\"bytes\":{d},\"mergeUs\":{d},\"copiedBytes\":{d}}}\n", .{
        numbers.mib << 20, merge_us, try sizeOf(&store) - before,
    });
}

/// Reads are measured after so many equal parts of the merges.
const decay_parts = 4;

/// Updates of one percent, each merged into a new base before the next one: whether merges and
/// reads become slower with the number of merges before. Times of all merges in µs, and of random
/// reads of the newest base.
fn measureDecay(
    gpa: std.mem.Allocator,
    files: store_module.Files,
    numbers: *const Numbers,
    out: *std.Io.Writer,
) !void {
    const disk_size = numbers.mib << 20;
    var store: Store = try .open(gpa, files, .{});
    defer store.close(gpa);
    var prng: Prng = .init(1);
    const times = try gpa.alloc(u64, @as(usize, numbers.merges) + 1);
    defer gpa.free(times);
    try out.print("{{\"mib\":{d},\"merges\":{d},\"rounds\":[", .{ numbers.mib, numbers.merges });
    const part = @max(1, numbers.merges / decay_parts);
    for (times, 0..) |*merge_us, merged| {
        const disk: MergedDisk = .{ .merges = merged, .size = disk_size };
        merge_us.* = try updateAndMerge(gpa, &store, &prng, disk);
        if (merged % part != 0) continue;
        var version = try store.openVersion(idOf(2 * merged + 2));
        defer version.close();
        const source = version.reader.source();
        const warm_us = try timed(&source, merged, numbers.reads, disk_size, false);
        store.cache.clear();
        const cold_us = try timed(&source, merged, numbers.reads / 10, disk_size, true);
        try out.print(
            "{s}{{\"merges\":{d},\"warmUs\":{d:.2},\"coldUs\":{d:.2}}}",
            .{
                if (merged == 0) "" else ",",    merged,
                perRead(warm_us, numbers.reads), perRead(cold_us, numbers.reads / 10),
            },
        );
    }
    try out.print("],\"mergeUs\":{f}}}\n", .{std.json.fmt(times, .{})});
}

fn perRead(us: u64, reads: u64) f64 {
    return @as(f64, @floatFromInt(us)) / @as(f64, @floatFromInt(@max(1, reads)));
}

/// A disk of so many bytes, and the number of merges before.
const MergedDisk = struct { merges: u64, size: u64 };

/// Returns how long the merge took, in µs. Before the first one the whole disk is written.
fn updateAndMerge(
    gpa: std.mem.Allocator,
    store: *Store,
    prng: *Prng,
    disk: MergedDisk,
) !u64 {
    const count = block.blockCount(disk.size);
    const below = if (disk.merges == 0) Uuid.zero else idOf(2 * disk.merges);
    const update = idOf(2 * disk.merges + 1);
    {
        const is_first = disk.merges == 0;
        const root = if (is_first) block.Entry.zeros else (try store.manifestOf(below)).root;
        var draft: VersionDraft = undefined;
        try draft.begin(gpa, store, root, disk.size);
        defer draft.end(gpa);
        if (is_first) {
            for (0..count) |index| try draft.putRandom(prng, index);
        } else for (0..count / 100) |step| try draft.putRandom(prng, step * 100 + prng.below(100));
        try draft.commit(update, below, disk.size);
    }
    const begin_us = nowUs();
    {
        var change = try store.lockForChange();
        defer change.end();
        try store_module.merge.merge(&change, .{
            .of = update,
            .onto = null,
            .version = idOf(2 * disk.merges + 2),
            .number = 2,
            .created_unix_ms = 0,
        });
    }
    return nowUs() - begin_us;
}

/// Bytes of all extents and nodes.
fn sizeOf(store: *Store) !u64 {
    var total: u64 = 0;
    for ([_]*store_module.file_set.FileSet{ &store.data, &store.nodes }) |set| {
        var file: block.FileNumber = 0;
        while (try set.next(file)) |found| : (file = found) {
            total += try store.files.size(try set.handleOf(found));
        }
    }
    return total;
}

/// A version of 100 GiB with this many blocks, all scattered. Nodes only: its blocks are not read
/// here.
fn measureLarge(
    gpa: std.mem.Allocator,
    files: store_module.Files,
    numbers: *const Numbers,
    out: *std.Io.Writer,
) !void {
    const disk_size: u64 = 100 << 30;
    const count = block.blockCount(disk_size);
    {
        var store: Store = try .open(gpa, files, .{});
        defer store.close(gpa);
        var draft: VersionDraft = undefined;
        try draft.begin(gpa, &store, .zeros, disk_size);
        defer draft.end(gpa);
        var prng: Prng = .init(1);
        for (0..@min(numbers.extents, count)) |index| {
            var hash: block.Hash = undefined;
            prng.fill(&hash);
            // No two neighbours are adjacent, and no location is used twice.
            const place: u40 = @intCast(index *% 0x9e37_79b1 % (1 << 25));
            try draft.builder.put(
                index,
                .{ .hash = hash, .location = .{ .file = 1, .block = place } },
            );
        }
        try draft.commit(idOf(1), .zero, disk_size);
    }
    dropPageCache();
    const open_begin_us = nowUs();
    var store: Store = try .open(gpa, files, .{});
    defer store.close(gpa);
    var version = try store.openVersion(idOf(1));
    defer version.close();
    const open_us = nowUs() - open_begin_us;
    const merge_begin_us = nowUs();
    {
        var change = try store.lockForChange();
        defer change.end();
        try store_module.merge.merge(
            &change,
            .{ .of = idOf(1), .onto = null, .version = idOf(2), .number = 2, .created_unix_ms = 0 },
        );
    }
    const merge_us = nowUs() - merge_begin_us;
    const usage_begin_us = nowUs();
    var counted: store_module.usage.Usage = try .of(gpa, &store);
    defer counted.deinit();
    try out.print(
        "{{\"extents\":{d},\"openUs\":{d},\"mergeUs\":{d},\"usageUs\":{d},\"usageBytes\":{d},\"peakKib\":{d}}}\n",
        .{
            numbers.extents,                                        open_us,
            merge_us,                                               nowUs() - usage_begin_us,
            counted.data.memorySize() + counted.nodes.memorySize(), peakKib(),
        },
    );
}

fn peakKib() u64 {
    return @intCast(std.posix.getrusage(linux.rusage.SELF).maxrss);
}
