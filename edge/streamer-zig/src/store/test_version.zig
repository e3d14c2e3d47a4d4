//! One version in files of a directory of its own, and what reads it, for tests of repairs.

const std = @import("std");
const block = @import("block.zig");
const Appender = @import("files/appender.zig");
const FileSet = @import("files/file_set.zig");
const LinuxFiles = @import("files/linux_files.zig");
const node_module = @import("tree/node.zig");
const NodeCache = @import("tree/node_cache.zig");
const TreeBuilder = @import("tree/builder.zig");
const UnitCache = @import("unit_cache.zig");
const UnitRepair = @import("unit_repair.zig");
const VersionReader = @import("version_reader.zig");
const testing = std.testing;
const gpa = testing.allocator;

pub const TestVersion = @This();

tmp: testing.TmpDir,
on: LinuxFiles,
data: FileSet,
nodes: FileSet,
cache: NodeCache,
units: UnitCache,
repairing: *UnitRepair,
reader: VersionReader,

/// Makes the blocks of the disk that are not zeros, in the order of the disk.
pub const Fill = *const fn (*TestVersion, data: *Appender, builder: *TreeBuilder) anyerror!void;

/// It must not move afterwards.
pub fn init(version: *TestVersion, block_count: u64, fill: Fill) !void {
    version.tmp = testing.tmpDir(.{ .iterate = true });
    version.on = .fromFd(version.tmp.dir.handle);
    const files = version.on.files();
    for ([_][]const u8{ "extents", "nodes" }) |dir| try files.makeDir(dir);
    version.data = .init(files, .extents);
    version.nodes = .init(files, .nodes);
    version.cache = try .init(gpa, 16);
    version.units = try .init(gpa, 8);
    version.repairing = try gpa.create(UnitRepair);
    var data: Appender = try .init(gpa, &version.data, 1 << 20);
    defer data.deinit(gpa);
    var nodes: Appender = try .init(gpa, &version.nodes, 1 << 20);
    defer nodes.deinit(gpa);
    var builder: TreeBuilder = .init(&version.cache, &nodes, .zeros, block_count);
    try fill(version, &data, &builder);
    const root = try builder.finish();
    try data.sync();
    try nodes.sync();
    version.reader = .{
        .reading = .{
            .data = &version.data,
            .nodes = &version.nodes,
            .cache = &version.cache,
            .units = &version.units,
        },
        .root = root,
        .root_level = node_module.rootLevel(block_count),
        .disk_size = block_count * block.block_size,
    };
}

pub fn deinit(version: *TestVersion) void {
    gpa.destroy(version.repairing);
    version.data.deinit();
    version.nodes.deinit();
    version.units.deinit(gpa);
    version.cache.deinit(gpa);
    version.tmp.cleanup();
}

/// As a disk that damages a file.
pub fn overwrite(version: *TestVersion, name: []const u8, at: u64, bytes: []const u8) !void {
    const files = version.on.files();
    const handle = try files.open(name, .write);
    defer files.close(handle);
    try files.write(handle, bytes, at);
    version.units.clear();
}
