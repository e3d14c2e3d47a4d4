//! Makes a version of an image. Blocks of zeros take no space, and blocks that equal the parent's
//! at the same index are shared. Each checkpoint makes everything read so far durable, and the
//! import can resume from there. The manifest is written last, so a partial image never becomes a
//! version. Blocks of other versions are not touched.
//!
//! A difference (difference/difference.zig) is imported over its base, which need not be the parent
//! of its version, and must result in the root that it names.
//!
//! The change lock is needed to start (`begin`, `proceed`) and to commit the version (`finish`).
//! During `read`, others may change the store: the import appends behind the existing blocks, to
//! files that it has locked or created. The garbage collection frees nothing there until the import
//! ends, and the parent cannot be deleted.

const std = @import("std");
const base = @import("base");
const Appender = @import("../files/appender.zig");
const block = @import("../block.zig");
const Checkpoint = @import("checkpoint.zig");
const ImagePieces = @import("image_pieces.zig");
const image_source = @import("image_source.zig");
const manifest_module = @import("../tree/manifest.zig");
const node_cache = @import("../tree/node_cache.zig");
const node_module = @import("../tree/node.zig");
const store_dir = @import("../files/store_dir.zig");
const TreeBuilder = @import("../tree/builder.zig");
const lz4 = @import("codec").lz4;
const unit = @import("../unit.zig");
const assert = std.debug.assert;
const Uuid = base.Uuid;

const Change = store_dir.Change;
const ImageSource = image_source.ImageSource;
const Manifest = manifest_module.Manifest;
const Piece = ImagePieces.Piece;
const Store = store_dir.Store;

const sector_size = 512;
const checkpoint_bytes = 256 << 20;
/// After a start, checkpoints come early and then less and less often: what is killed every few
/// seconds gets on, too.
const checkpoint_first_us = std.time.us_per_s;
const checkpoint_us = 10 * std.time.us_per_s;

/// `InUse`: another process runs the import. `Locked`: its parent is being deleted. `OtherBase`: of
/// a difference, which has other bytes here. About the source: `ReadFailed` at `Import.failed_at`,
/// `SourceShrank` (its end is there), `SourceGrew`, `SourceChanged`,
/// `NotSectors`, `Empty`, `TooLarge`, `OtherSize` (than the parent), `OtherRoot` (than the
/// difference names). `Canceled`: a checkpoint was written.
pub const SourceError = error{
    ReadFailed,
    SourceShrank,
    SourceGrew,
    SourceChanged,
    NotSectors,
    Empty,
    TooLarge,
    OtherSize,
    OtherRoot,
    Canceled,
};
pub const Error = SourceError || TreeBuilder.Error || store_dir.VersionError || store_dir.Error ||
    error{ OutOfMemory, NoThreads, ParentMissing, OtherBase, InUse };

pub const Progress = struct {
    /// Bytes of the image processed so far.
    position: u64 = 0,
    /// Null while unknown.
    size: ?u64 = null,
    zero_bytes: u64 = 0,
    shared_bytes: u64 = 0,
    written_bytes: u64 = 0,
};

pub const Observer = struct {
    context: *anyopaque,
    /// Called after each piece.
    progress: *const fn (*anyopaque, *const Progress) void,
    monotonicUs: *const fn () u64,
};

pub const Import = @This();

gpa: std.mem.Allocator,
io: std.Io,
store: *Store,
running: Checkpoint.ImportLock,
/// The parent of an image, or the base of a difference; open, so that it cannot be deleted during
/// the import.
parent: ?store_dir.OpenVersion,
source: ImageSource,
is_canceled: *const std.atomic.Value(bool),
watch: Observer,
checkpoint: Checkpoint,
/// Null for a stream until its end.
disk_size: ?u64,
/// The tree to be changed is not all zeros.
has_base: bool,
/// Bytes before this position were imported earlier; they are read again and must be equal.
compare_to: u64,
builder: TreeBuilder,
data: Appender,
nodes: *Appender,
/// For units that have only some of the blocks of their place.
packer: *Packer,
done: Progress,
synced_at: u64,
synced_at_us: u64,
sync_after_us: u64 = checkpoint_first_us,
/// Position of an error, in bytes from the start of the image.
failed_at: u64 = 0,

pub const Options = struct {
    gpa: std.mem.Allocator,
    io: std.Io,
    source: ImageSource,
    is_canceled: *const std.atomic.Value(bool),
    watch: Observer,
};

/// Starts an import. Sets position, root, locations, stamp and size of the checkpoint.
pub fn begin(options: Options, change: *Change, new: Checkpoint) Error!Import {
    var checkpoint = new;
    const now = options.source.now() orelse return error.ReadFailed;
    checkpoint.stamp = now.stamp;
    checkpoint.source_size = options.source.size;
    checkpoint.position = 0;
    checkpoint.root = .zeros;
    var import = try prepare(options, change, checkpoint);
    errdefer import.deinit();
    const started = &import.checkpoint;
    if (import.parent) |*parent| started.root = parent.manifest.root;
    started.root_level = node_module.rootLevel(
        block.blockCount(import.disk_size orelse manifest_module.disk_size_max),
    );
    started.data_from = try import.data.open();
    started.nodes_from = try import.nodes.open();
    import.open();
    // Before anything is appended: only the checkpoint tells others to keep it.
    try started.write(change.store.files);
    return import;
}

/// Resumes from a checkpoint. Throws `SourceChanged` if the source is not the one that the
/// import started with.
pub fn proceed(options: Options, change: *Change, checkpoint: Checkpoint) Error!Import {
    const now = options.source.now() orelse return error.ReadFailed;
    if (!now.stamp.eql(checkpoint.stamp)) return error.SourceChanged;
    if (!std.meta.eql(options.source.size, checkpoint.source_size)) return error.SourceChanged;
    var import = try prepare(options, change, checkpoint);
    errdefer import.deinit();
    // Behind what it has written before.
    _ = try import.data.open();
    _ = try import.nodes.open();
    import.open();
    return import;
}

/// Reads the image and commits the version, for callers that hold the change lock throughout.
pub fn run(import: *Import, change: *Change) Error!Manifest {
    try import.read();
    return import.finish(change);
}

fn prepare(options: Options, change: *Change, checkpoint: Checkpoint) Error!Import {
    const store = change.store;
    const gpa = options.gpa;
    var disk_size = if (options.source.size) |size| try diskSize(size, checkpoint.pad) else null;
    var parent: ?store_dir.OpenVersion = null;
    const shared = checkpoint.sharedVersion();
    if (!shared.eql(.zero)) {
        parent = store.openVersion(shared) catch |err|
            return if (err == error.NotFound) error.ParentMissing else err;
    }
    errdefer if (parent) |*opened| opened.close();
    if (parent) |*opened| {
        if (disk_size) |size| if (size != opened.manifest.disk_size) return error.OtherSize;
        disk_size = opened.manifest.disk_size;
        if (checkpoint.difference) |known|
            if (!std.mem.eql(u8, &known.base_root, &opened.manifest.root.hash))
                return error.OtherBase;
    }
    try change.allowUnits();
    // Refuse a version that cannot get a counter before hours of reading.
    _ = try change.highestCounter();
    var running: Checkpoint.ImportLock = try .begin(store.files, checkpoint.version);
    errdefer running.end();
    const nodes = try gpa.create(Appender);
    errdefer gpa.destroy(nodes);
    nodes.* = try .init(gpa, &store.nodes, store.options.file_size_max);
    errdefer nodes.deinit(gpa);
    const packer = try gpa.create(Packer);
    errdefer gpa.destroy(packer);
    return .{
        .gpa = gpa,
        .packer = packer,
        .io = options.io,
        .store = store,
        .running = running,
        .parent = parent,
        .source = options.source,
        .is_canceled = options.is_canceled,
        .watch = options.watch,
        .checkpoint = checkpoint,
        .disk_size = disk_size,
        .has_base = false,
        .compare_to = if (checkpoint.stamp.isProof()) 0 else checkpoint.position,
        .builder = undefined,
        .data = try .init(gpa, &store.data, store.options.file_size_max),
        .nodes = nodes,
        .done = .{ .size = disk_size },
        .synced_at = checkpoint.position,
        .synced_at_us = options.watch.monotonicUs(),
    };
}

fn open(import: *Import) void {
    const count = block.blockCount(import.disk_size orelse manifest_module.disk_size_max);
    import.has_base = !import.checkpoint.root.isZeros();
    import.builder = .init(&import.store.cache, import.nodes, import.checkpoint.root, count);
}

pub fn deinit(import: *Import) void {
    import.data.deinit(import.gpa);
    import.nodes.deinit(import.gpa);
    import.gpa.destroy(import.nodes);
    import.gpa.destroy(import.packer);
    if (import.parent) |*parent| parent.close();
    import.running.end();
    import.* = undefined;
}

/// Reads the image to its end; others may change the store meanwhile. On return everything is
/// durable, and a checkpoint is there from which the import can be finished.
pub fn read(import: *Import) Error!void {
    const from = if (import.compare_to > 0) 0 else import.checkpoint.position;
    import.done.position = from;
    // What an update shares is not packed again.
    const packs = !import.has_base;
    const pieces: *ImagePieces = try .create(import.gpa, import.io, import.source, from, packs);
    defer pieces.destroy(import.gpa);
    while (pieces.take()) |piece| {
        if (import.is_canceled.load(.monotonic)) return import.cancel();
        if (piece.problem) |problem| return import.fail(piece, problem);
        try import.take(piece);
        import.done.position = @max(import.done.position, piece.offset + piece.size);
        // From here on a thread fills the piece with a later part of the image.
        pieces.giveBack(piece);
        import.watch.progress(import.watch.context, &import.done);
        if (import.isDue()) try import.save();
    }
    return import.takeEnd();
}

fn fail(import: *Import, piece: *const Piece, problem: ImagePieces.Problem) Error {
    import.failed_at = piece.failed_at;
    return switch (problem) {
        error.Canceled => import.cancel(),
        error.Short => error.SourceShrank,
        error.ReadFailed => error.ReadFailed,
    };
}

fn cancel(import: *Import) Error {
    import.save() catch |err| return err;
    return error.Canceled;
}

fn take(import: *Import, piece: *const Piece) Error!void {
    if (piece.offset > import.done.position)
        try import.takeGap(import.done.position, piece.offset);
    const end = piece.offset + piece.size;
    if (end > import.disk_size orelse manifest_module.disk_size_max)
        return if (import.disk_size == null) error.TooLarge else error.OtherSize;
    var from: usize = 0;
    while (from < piece.blocks()) {
        const index = piece.indexOf(from);
        const count: usize =
            @intCast(@min(piece.blocks() - from, import.endOfUnit(index) - index));
        try import.takeBlocks(piece, from, count);
        from += count;
    }
}

/// Returns the block of the disk at which the next unit begins. A tree is changed in the order of
/// its leaves, so that the unit of an update ends with its leaf.
fn endOfUnit(import: *const Import, index: u64) u64 {
    const end = index - index % unit.blocks_max + unit.blocks_max;
    if (!import.has_base) return end;
    return @min(end, index - index % node_module.fanout + node_module.fanout);
}

/// Takes the blocks of one unit: those that are new are written as one.
fn takeBlocks(import: *Import, piece: *const Piece, from: usize, count: usize) Error!void {
    var new: ImagePieces.Blocks = .empty;
    for (from..from + count) |at| {
        const index = piece.indexOf(at);
        const end = piece.offset + piece.size;
        const size: u64 = @min(block.block_size, end - index * block.block_size);
        const is_zeros = piece.zeros.isSet(at);
        if (index * block.block_size < import.compare_to) {
            try import.compare(index, if (is_zeros) block.zero_hash else piece.hashes[at]);
        } else if (is_zeros) {
            if (import.has_base) try import.builder.put(index, .zeros);
            import.done.zero_bytes += size;
        } else if (try import.isShared(index, &piece.hashes[at])) {
            import.done.shared_bytes += size;
        } else {
            new.set(at - from);
            import.done.written_bytes += size;
        }
    }
    if (new.findFirstSet() != null) try import.write(piece, from, new);
}

fn isShared(import: *Import, index: u64, hash: *const block.Hash) Error!bool {
    if (!import.has_base) return false;
    const before = try import.builder.get(index);
    return std.mem.eql(u8, &before.hash, hash);
}

fn write(import: *Import, piece: *const Piece, from: usize, new: ImagePieces.Blocks) Error!void {
    var each = new.iterator(.{});
    const stored = import.pack(piece, from, new) orelse {
        while (each.next()) |index| {
            const at = from + index;
            const location = try import.data.append(&piece.bytes[at]);
            try import.builder.put(
                piece.indexOf(at),
                .{ .hash = piece.hashes[at], .location = location },
            );
        }
        return;
    };
    const place = try import.data.appendUnit(stored);
    const count = new.count();
    var at_unit: usize = 0;
    while (each.next()) |index| : (at_unit += 1) {
        const at = from + index;
        const location = unit.locationOf(place.file, place.sector, stored.len, count, at_unit);
        try import.builder.put(
            piece.indexOf(at),
            .{ .hash = piece.hashes[at], .location = location },
        );
    }
}

const Packer = struct { table: lz4.Table, room: [unit.raw_size_max]u8, stored: unit.Stored };

/// Returns the unit of these blocks, or null if it is not worth it.
fn pack(import: *Import, piece: *const Piece, from: usize, new: ImagePieces.Blocks) ?[]const u8 {
    // A thread has packed all blocks with data, and all are new.
    if (!import.has_base) return piece.unitAt(from);
    const packer = import.packer;
    const raw = piece.gather(from, new, &packer.room);
    return unit.pack(.{ .quick = &packer.table }, &packer.stored, raw);
}

/// Checks a source without a conclusive stamp, so that a different stream or disk is not joined
/// to the first part.
fn compare(import: *Import, index: u64, hash: block.Hash) Error!void {
    const before = try import.builder.get(index);
    if (std.mem.eql(u8, &before.hash, &hash)) return;
    import.failed_at = index * block.block_size;
    return error.SourceChanged;
}

/// Takes the bytes that the source has skipped.
fn takeGap(import: *Import, from: u64, to: u64) Error!void {
    assert(from % block.block_size == 0);
    if (import.has_base and import.source.isDifference()) {
        import.done.shared_bytes += to - from;
        return;
    }
    import.done.zero_bytes += to - from;
    if (!import.has_base) return;
    const last = std.math.divCeil(u64, to, block.block_size) catch unreachable;
    for (from / block.block_size..last) |index| try import.builder.put(index, .zeros);
}

fn isDue(import: *const Import) bool {
    if (import.done.position < import.compare_to) return false;
    if (import.done.position - import.synced_at >= checkpoint_bytes) return true;
    return import.watch.monotonicUs() - import.synced_at_us >= import.sync_after_us;
}

/// Everything before the position comes from one state of the source and is durable.
fn save(import: *Import) Error!void {
    try import.checkSource();
    // The checkpoint already covers the part that is still being compared.
    if (import.done.position >= import.compare_to) {
        import.checkpoint.root = try import.builder.finish();
        import.checkpoint.position = import.done.position - import.done.position % block.block_size;
        try import.data.sync();
        try import.nodes.sync();
        try import.checkpoint.write(import.store.files);
    }
    import.synced_at = import.done.position;
    import.synced_at_us = import.watch.monotonicUs();
    import.sync_after_us = @min(2 * import.sync_after_us, checkpoint_us);
}

fn checkSource(import: *Import) SourceError!void {
    const now = import.source.now() orelse return error.ReadFailed;
    if (import.source.size) |size| if (now.size) |found| {
        import.failed_at = found;
        if (found > size) return error.SourceGrew;
        if (found < size) return error.SourceShrank;
    };
    if (!now.stamp.eql(import.checkpoint.stamp)) return error.SourceChanged;
}

fn takeEnd(import: *Import) Error!void {
    try import.checkSource();
    const end = import.source.size orelse import.done.position;
    const disk_size = try diskSize(end, import.checkpoint.pad);
    if (disk_size != import.disk_size orelse disk_size) return error.OtherSize;
    if (end < import.compare_to) return error.SourceChanged;
    if (end > import.done.position) try import.takeGap(import.done.position, end);
    import.done.position = end;
    return import.save();
}

/// Commits the version. May be called again after an error.
pub fn finish(import: *Import, change: *Change) Error!Manifest {
    assert(change.store == import.store);
    // The source may have been written while the change lock was waited for.
    try import.checkSource();
    const store = import.store;
    const disk_size = try diskSize(import.done.position, import.checkpoint.pad);
    var root = try import.builder.finish();
    if (import.disk_size == null) root = try import.lowered(root, disk_size);
    const checkpoint = &import.checkpoint;
    const known = checkpoint.difference;
    if (known) |expected| if (!std.mem.eql(u8, &expected.root, &root.hash)) return error.OtherRoot;
    const manifest: Manifest = .{
        .store = store.id,
        .organization = store.organization,
        .vdisk = checkpoint.vdisk,
        .version = checkpoint.version,
        .parent = checkpoint.parent,
        .number = checkpoint.number,
        .incarnation = if (known) |made| made.incarnation else 0,
        .counter = if (known) |made|
            try change.takeCounter(made.counter)
        else
            try change.nextCounter(),
        .created_unix_ms = if (known) |made|
            made.created_unix_ms
        else
            @intCast(@max(0, std.Io.Clock.real.now(import.io).toMilliseconds())),
        .disk_size = disk_size,
        .root = root,
        .kernel = checkpoint.kernel,
        .initrd = checkpoint.initrd,
        .command_line = checkpoint.command_line,
        .name = checkpoint.name,
        .note = checkpoint.note,
        .has_units = true,
    };
    try change.commit(&manifest);
    // The version is there; a leftover checkpoint reports that to a resumed import.
    Checkpoint.remove(store.files, checkpoint.version) catch {};
    import.running.remove();
    import.done.position = disk_size;
    import.done.size = disk_size;
    return manifest;
}

/// The tree of a stream started with the root of the largest disk: all of its blocks are below
/// the first entries.
fn lowered(import: *Import, root: block.Entry, disk_size: u64) Error!block.Entry {
    try import.nodes.flush();
    var entry = root;
    var level = import.checkpoint.root_level;
    const wanted = node_module.rootLevel(block.blockCount(disk_size));
    while (level > wanted) : (level -= 1) {
        if (entry.isZeros()) return entry;
        const store = import.store;
        entry = (try store.cache.get(&store.nodes, &entry, level)).node.entry(0);
    }
    return entry;
}

/// Size in bytes of the disk for an image of this size.
fn diskSize(size: u64, pad: bool) SourceError!u64 {
    if (size == 0) return error.Empty;
    if (size > manifest_module.disk_size_max) return error.TooLarge;
    if (size % sector_size != 0 and !pad) return error.NotSectors;
    return std.mem.alignForward(u64, size, sector_size);
}

/// Returns the number of a vDisk's next version in this store, counting unfinished imports.
pub fn nextNumber(change: *Change, vdisk: Uuid) (store_dir.VersionError || Checkpoint.Error)!u32 {
    const store = change.store;
    var number: u32 = 1;
    var id: ?Uuid = null;
    while (try store.nextVersion(id)) |found| {
        id = found;
        const other = try store.manifestOf(found);
        if (other.vdisk.eql(vdisk)) number = @max(number, other.number +| 1);
    }
    id = null;
    while (try Checkpoint.next(store.files, id)) |found| {
        id = found;
        const other = Checkpoint.read(store.files, found) catch continue;
        if (other.vdisk.eql(vdisk)) number = @max(number, other.number +| 1);
    }
    return number;
}

test {
    _ = @import("import_test.zig");
}
