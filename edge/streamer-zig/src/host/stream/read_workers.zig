//! Threads that read disks where that takes waiting for them, or hashing what has come. Each has a reader of its own: what they share with
//! the packet loop is a pipe to either side. Everything that they need is allocated at the start.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const wire = @import("wire").stream;
const HeldDisk = @import("version_disk.zig").HeldDisk;
const PointerChannel = @import("pointer_channel.zig").PointerChannel;
const Layer = @import("write_layers.zig").Layer;
const Slot = @import("read_queue.zig").Slot;
const assert = std.debug.assert;

pub const Error = store.block_source.ReadError;

pub const Options = struct {
    threads: u16 = 8,
    /// So many reads are with the threads, or back and not sent yet; the buffer of each takes memory once it was used.
    tasks: u16 = 16,
    /// Nodes of versions' trees in memory, of each thread: 1 MiB, above 100 MiB of blocks.
    cache_nodes: u32 = 256,
    /// What a thread does; tests put something in between.
    fill: *const fn (reader: *Reader, task: *Task) Error!void = Reader.fill,
};

/// Bytes of a disk, from the write layer above it or from the version.
pub const Part = struct { offset: u64, size: u32, is_own: bool };

/// One read.
pub const Task = struct {
    buffer: []u8,
    /// From here on it is the loop's to fill in.
    slot: *Slot = undefined,
    disk: HeldDisk = undefined,
    /// It stays open until the task has ended.
    layer: ?*Layer = null,
    /// Byte of the disk that the buffer begins with.
    begin: u64 = 0,
    parts: base.BoundedArray(Part, parts_max) = .empty,
    /// The thread's.
    result: Error!void = {},
    next: ?*Task = null,

    /// As many as a READ has ranges.
    pub const parts_max = wire.ranges_max;

    pub fn bytesOf(task: *Task, part: *const Part) []u8 {
        return task.buffer[@intCast(part.offset - task.begin)..][0..part.size];
    }
};

/// Of one thread.
pub const Reader = struct {
    cache: store.node_cache.NodeCache,
    /// Of the store that the first version lies in: an edge has one.
    files: ?struct { data: store.file_set.FileSet, nodes: store.file_set.FileSet } = null,

    pub fn fill(reader: *Reader, task: *Task) Error!void {
        for (task.parts.constSlice()) |*part| {
            const bytes = task.bytesOf(part);
            if (part.is_own) try readOwn(task, bytes, part.offset) else try reader.readBelow(&task.disk, bytes, part.offset);
        }
    }

    fn readOwn(task: *const Task, bytes: []u8, offset: u64) Error!void {
        const inner = &task.layer.?.inner;
        const is_whole = inner.files.readWhole(inner.data, bytes, offset) catch return error.ReadFailed;
        if (!is_whole) return error.Lost;
    }

    fn readBelow(reader: *Reader, disk: *HeldDisk, bytes: []u8, offset: u64) Error!void {
        const version = switch (disk.*) {
            .file => |*file| return file.read(bytes, offset),
            .version => |*version| version,
        };
        if (reader.files == null) reader.files = .{ .data = .init(version.files, .extents), .nodes = .init(version.files, .nodes) };
        const files = &reader.files.?;
        var tree: store.VersionReader = .{
            .reading = .{ .data = &files.data, .nodes = &files.nodes, .cache = &reader.cache },
            .root = version.root,
            .root_level = version.root_level,
            .disk_size = version.disk_size,
        };
        return tree.source().read(bytes, offset);
    }

    fn deinit(reader: *Reader, gpa: std.mem.Allocator) void {
        if (reader.files) |*files| {
            files.data.deinit();
            files.nodes.deinit();
        }
        reader.cache.deinit(gpa);
    }
};

pub const ReadWorkers = struct {
    options: Options,
    tasks: []Task,
    buffers: []align(std.heap.page_size_min) u8,
    free: ?*Task = null,
    readers: []Reader,
    threads: []std.Thread,
    orders: PointerChannel,
    ended: PointerChannel,

    pub const InitError = error{ OutOfMemory, SystemCallFailed };

    pub fn init(gpa: std.mem.Allocator, options: Options) InitError!ReadWorkers {
        const tasks = try gpa.alloc(Task, options.tasks);
        errdefer gpa.free(tasks);
        // Pages that are never used take no memory; an allocator would touch them all.
        const size = @as(usize, options.tasks) * wire.read_size_max;
        const buffers = std.posix.mmap(null, size, .{ .READ = true, .WRITE = true }, .{ .TYPE = .PRIVATE, .ANONYMOUS = true }, -1, 0) catch
            return error.OutOfMemory;
        errdefer std.posix.munmap(buffers);
        const readers = try gpa.alloc(Reader, options.threads);
        errdefer gpa.free(readers);
        for (readers) |*reader| reader.* = .{ .cache = try .init(gpa, options.cache_nodes) };
        var workers: ReadWorkers = .{
            .options = options,
            .tasks = tasks,
            .buffers = buffers,
            .readers = readers,
            .threads = try gpa.alloc(std.Thread, options.threads),
            .orders = try .init(.thread),
            .ended = try .init(.loop),
        };
        for (tasks, 0..) |*task, index| {
            task.* = .{ .buffer = buffers[index * wire.read_size_max ..][0..wire.read_size_max] };
            workers.put(task);
        }
        return workers;
    }

    /// Threads run until `deinit`, or until the process ends: `workers` stays where it is.
    pub fn start(workers: *ReadWorkers) std.Thread.SpawnError!void {
        for (workers.threads, workers.readers) |*thread, *reader|
            thread.* = try std.Thread.spawn(.{ .stack_size = 256 << 10 }, work, .{ workers, reader });
    }

    /// After `start`: waits until the reads that threads have begun are over.
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

    /// Null: all are out. To be given to `order` or `put`.
    pub fn take(workers: *ReadWorkers) ?*Task {
        const task = workers.free orelse return null;
        workers.free = task.next;
        task.next = null;
        return task;
    }

    /// It goes to a thread, and comes back by `takeEnded`; never waits: a pipe has room for all tasks.
    pub fn order(workers: *ReadWorkers, task: *Task) void {
        workers.orders.send(Task, task);
    }

    /// Something to wait for: a task has ended.
    pub fn endedFd(workers: *const ReadWorkers) i32 {
        return workers.ended.receiveFd();
    }

    /// Its buffer stays as it is until `release`.
    pub fn takeEnded(workers: *ReadWorkers) ?*Task {
        return workers.ended.receive(Task);
    }

    pub fn release(workers: *ReadWorkers, task: *Task) void {
        task.disk.letGo();
        workers.put(task);
    }

    /// One that was not ordered.
    pub fn put(workers: *ReadWorkers, task: *Task) void {
        task.next = workers.free;
        workers.free = task;
    }

    fn work(workers: *ReadWorkers, reader: *Reader) void {
        while (workers.orders.receive(Task)) |task| {
            task.result = workers.options.fill(reader, task);
            workers.ended.send(Task, task);
        }
    }
};
