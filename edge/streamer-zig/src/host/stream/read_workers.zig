//! Threads that read disks where this means waiting for them, or hashing what was read. Each has
//! its own reader: they share only a pipe in each direction with the packet loop. Everything that
//! they need is allocated at the start.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const wire = @import("wire").stream;
const HeldDisk = @import("version_disk.zig").HeldDisk;
const AnswerPieces = @import("answer_pieces.zig");
const PointerChannel = @import("pointer_channel.zig");
const Layer = @import("agent").write_caches.Layer;
const Slot = @import("read_queue.zig").Slot;
const assert = std.debug.assert;

pub const Error = store.block_source.ReadError;

pub const Options = struct {
    threads: u16 = 8,
    /// Reads that are with the threads, or back but not sent yet; the buffer of each takes memory
    /// once it was used.
    tasks: u16 = 16,
    /// Nodes of versions' trees in memory, per thread: 1 MiB, for 100 MiB of blocks.
    cache_nodes: u32 = 256,
    /// Unpacked units in memory, per thread: 512 KiB.
    cache_units: u32 = 16,
    /// The work of a thread; tests replace it.
    fill: *const fn (reader: *Reader, task: *Task) Error!void = Reader.fill,
};

/// Bytes of a disk, from the write layer above it or from the version.
pub const Part = struct { offset: u64, size: u32, is_own: bool };

/// One read.
pub const Task = struct {
    buffer: []u8,
    /// From here on, the loop fills in the fields.
    slot: *Slot = undefined,
    disk: HeldDisk = undefined,
    /// It stays open until the task has ended.
    layer: ?*Layer = null,
    /// Offset in the disk at which the buffer begins.
    begin: u64 = 0,
    parts: base.BoundedArray(Part, parts_max) = .empty,
    /// Set by the thread.
    result: Error!void = {},
    next: ?*Task = null,

    /// As many as a READ has ranges.
    pub const parts_max = wire.ranges_max;

    pub fn bytesOf(task: *Task, part: *const Part) []u8 {
        return task.buffer[@intCast(part.offset - task.begin)..][0..part.size];
    }
};

/// Takes reads that failed since the store is damaged; they come back to their `ReadWorkers` once
/// they were tried again.
pub const Repairs = struct {
    context: *anyopaque,
    /// Returns false if the read has failed for good.
    take: *const fn (context: *anyopaque, workers: *ReadWorkers, task: *Task) bool,
};

/// The reader of one thread.
pub const Reader = struct {
    cache: store.node_cache.NodeCache,
    units: store.UnitCache,
    /// The files of the first version's store: an edge has one store.
    files: ?struct { data: store.file_set.FileSet, nodes: store.file_set.FileSet } = null,

    pub fn init(gpa: std.mem.Allocator, nodes: u32, units: u32) error{OutOfMemory}!Reader {
        var cache: store.node_cache.NodeCache = try .init(gpa, nodes);
        errdefer cache.deinit(gpa);
        return .{ .cache = cache, .units = try .init(gpa, units) };
    }

    pub fn fill(reader: *Reader, task: *Task) Error!void {
        for (task.parts.constSlice()) |*part| {
            const bytes = task.bytesOf(part);
            if (part.is_own) try readOwn(
                task,
                bytes,
                part.offset,
            ) else try reader.readBelow(&task.disk, bytes, part.offset);
        }
    }

    fn readOwn(task: *const Task, bytes: []u8, offset: u64) Error!void {
        // The loop reads and checks it once it is in memory.
        return task.layer.?.inner.warm(bytes, offset);
    }

    pub fn readBelow(reader: *Reader, disk: *HeldDisk, bytes: []u8, offset: u64) Error!void {
        const version = switch (disk.*) {
            .file => |*file| return file.read(bytes, offset),
            .version => |*version| version,
        };
        var tree = reader.treeOf(version);
        return tree.source().read(bytes, offset);
    }

    /// Reads a piece of a version, of whole blocks, and returns its key.
    pub fn readPiece(
        reader: *Reader,
        disk: *HeldDisk,
        bytes: []u8,
        offset: u64,
    ) Error!AnswerPieces.Key {
        var tree = reader.treeOf(&disk.version);
        try tree.source().read(bytes, offset);
        return .ofPiece(&tree, bytes.len, offset);
    }

    pub fn treeOf(reader: *Reader, version: *const HeldDisk.Version) store.VersionReader {
        if (reader.files == null) reader.files =
            .{ .data = .init(version.files, .extents), .nodes = .init(version.files, .nodes) };
        const files = &reader.files.?;
        return .{
            .reading = .{
                .data = &files.data,
                .nodes = &files.nodes,
                .cache = &reader.cache,
                .units = &reader.units,
            },
            .root = version.root,
            .root_level = version.root_level,
            .disk_size = version.disk_size,
        };
    }

    pub fn deinit(reader: *Reader, gpa: std.mem.Allocator) void {
        if (reader.files) |*files| {
            files.data.deinit();
            files.nodes.deinit();
        }
        reader.units.deinit(gpa);
        reader.cache.deinit(gpa);
    }
};

pub const ReadWorkers = @This();

options: Options,
tasks: []Task,
buffers: []align(std.heap.page_size_min) u8,
free: ?*Task = null,
readers: []Reader,
threads: []std.Thread,
orders: PointerChannel,
ended: PointerChannel,
/// Set before `start`. Null: nothing is repaired.
repairs: ?Repairs = null,

pub const InitError = error{ OutOfMemory, SystemCallFailed };

pub fn init(gpa: std.mem.Allocator, options: Options) InitError!ReadWorkers {
    const tasks = try gpa.alloc(Task, options.tasks);
    errdefer gpa.free(tasks);
    // Pages that are never used take no memory; an allocator would touch them all.
    const size = @as(usize, options.tasks) * wire.read_size_max;
    const buffers =
        std.posix.mmap(null, size, .{
            .READ = true,
            .WRITE = true,
        }, .{ .TYPE = .PRIVATE, .ANONYMOUS = true }, -1, 0) catch
            return error.OutOfMemory;
    errdefer std.posix.munmap(buffers);
    const readers = try gpa.alloc(Reader, options.threads);
    errdefer gpa.free(readers);
    for (readers) |*reader| reader.* = try .init(gpa, options.cache_nodes, options.cache_units);
    var workers: ReadWorkers = .{
        .options = options,
        .tasks = tasks,
        .buffers = buffers,
        .readers = readers,
        .threads = try gpa.alloc(std.Thread, options.threads),
        .orders = try .init(.thread, tasks.len),
        .ended = try .init(.loop, tasks.len),
    };
    for (tasks, 0..) |*task, index| {
        task.* = .{ .buffer = buffers[index * wire.read_size_max ..][0..wire.read_size_max] };
        workers.put(task);
    }
    return workers;
}

/// Threads run until `deinit`, or until the process ends: `workers` must not move.
pub fn start(workers: *ReadWorkers) std.Thread.SpawnError!void {
    for (workers.threads, workers.readers) |*thread, *reader|
        thread.* = try std.Thread.spawn(.{ .stack_size = 256 << 10 }, work, .{ workers, reader });
}

/// After `start`: waits until the threads have ended the reads in progress.
pub fn deinit(workers: *ReadWorkers, gpa: std.mem.Allocator) void {
    workers.orders.end();
    for (workers.threads) |thread| thread.join();
    while (workers.takeEnded()) |task| workers.release(task);
    for (workers.readers) |*reader| reader.deinit(gpa);
    workers.orders.deinit();
    workers.ended.deinit();
    gpa.free(workers.threads);
    gpa.free(workers.readers);
    gpa.free(workers.tasks);
    std.posix.munmap(workers.buffers);
    workers.* = undefined;
}

/// Returns null if all tasks are out. Pass the task to `order` or `put`.
pub fn take(workers: *ReadWorkers) ?*Task {
    const task = workers.free orelse return null;
    workers.free = task.next;
    task.next = null;
    return task;
}

/// Gives the task to a thread; it comes back by `takeEnded`. Never waits: a pipe has capacity
/// for all tasks.
pub fn order(workers: *ReadWorkers, task: *Task) void {
    workers.orders.send(Task, task);
}

/// The descriptor that becomes readable when a task has ended.
pub fn endedFd(workers: *const ReadWorkers) i32 {
    return workers.ended.receiveFd();
}

/// The task's buffer stays unchanged until `release`.
pub fn takeEnded(workers: *ReadWorkers) ?*Task {
    return workers.ended.receive(Task);
}

pub fn release(workers: *ReadWorkers, task: *Task) void {
    task.disk.letGo();
    workers.put(task);
}

/// Returns a task that was not ordered.
pub fn put(workers: *ReadWorkers, task: *Task) void {
    task.next = workers.free;
    workers.free = task;
}

fn work(workers: *ReadWorkers, reader: *Reader) void {
    while (workers.orders.receive(Task)) |task| {
        task.result = workers.options.fill(reader, task);
        if (workers.repairs) |repairs| if (task.result) |_| {} else |err| switch (err) {
            error.Damaged, error.ReadFailed => if (repairs.take(
                repairs.context,
                workers,
                task,
            )) continue,
            error.BeyondTheEnd, error.Lost => {},
        };
        workers.end(task);
    }
}

/// The thread that has the task is done with it.
pub fn end(workers: *ReadWorkers, task: *Task) void {
    workers.ended.send(Task, task);
}
