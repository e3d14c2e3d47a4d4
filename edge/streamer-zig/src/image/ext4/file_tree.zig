//! A tree of files to be written as a file system. Whoever makes it (`../oci/merge.zig`) knows the
//! names and properties; the content of regular files stays where it is until it is written.
//! Memory is bounded by `Limits`, whatever an archive says.

const std = @import("std");
const Allocator = std.mem.Allocator;

pub const name_size_max = 255;
/// The kernel's PATH_MAX, without its zero.
pub const path_size_max = 4095;
/// As deep as the kernel follows links in one path.
const links_followed_max = 40;
/// Of directories, so that walks may recurse.
pub const depth_max = 512;

pub const Limits = struct {
    inodes_max: u32 = 1 << 20,
    /// Bytes of names, targets of links, extended attributes and maps of sparse files.
    text_size_max: u64 = 128 << 20,
    /// Entries of directories; a file may have several.
    names_max: u32 = 2 << 20,
    /// Names on the paths of all entries, and on the links that they lead over: real images have
    /// some ten million, and a link may lead over many others each time.
    steps_max: u64 = 256 << 20,
};

pub const Error = error{
    OutOfMemory,
    TooManyFiles,
    NamesTooLarge,
    NameTooLong,
    TooDeep,
    LinkCycle,
    NotADirectory,
    Missing,
    PathsTooLong,
};

pub const Kind = enum { file, directory, symlink, char_device, block_device, fifo };

pub const Xattr = struct { name: []const u8, value: []const u8 };

/// Bytes of a sparse file that are stored; everything else is zeros.
pub const Segment = struct { offset: u64, size: u64 };

pub const Child = struct {
    inode: u32,
    /// The layer that has put it here last.
    layer: u32,
};

pub const Children = std.array_hash_map.String(Child);

pub const NamedChild = struct { name: []const u8, inode: u32 };

/// A run of blocks of a file.
pub const Extent = struct { logical: u32, count: u32, physical: u64 };

pub const Inode = struct {
    kind: Kind,
    /// The lower twelve bits: permissions, setuid, setgid, sticky.
    mode: u16,
    uid: u32 = 0,
    gid: u32 = 0,
    mtime: i64 = 0,
    mtime_ns: u32 = 0,
    major: u32 = 0,
    minor: u32 = 0,
    /// Bytes that a reader of the file sees.
    size: u64 = 0,
    /// Where its content is: in this layer's unpacked bytes, from this offset on.
    layer: u32 = 0,
    offset: u64 = 0,
    /// Null: all of the file is stored.
    segments: ?[]const Segment = null,
    target: []const u8 = "",
    xattrs: []const Xattr = &.{},
    /// Of a directory.
    children: Children = .empty,
    parent: u32 = root,
    depth: u16 = 0,
    /// Of a directory: the last layer that hid what lower layers have in it.
    hidden_by: ?u32 = null,
    /// Set by the plan of the file system.
    plan: struct {
        /// 0 until the inode is reached from the root.
        number: u32 = 0,
        links: u32 = 0,
        sorted: []const NamedChild = &.{},
        extents: []const Extent = &.{},
        /// Blocks of the extent tree, the leaves first.
        tree_blocks: []const u64 = &.{},
        xattr_block: u64 = 0,
        data_blocks: u64 = 0,
    } = .{},
};

pub const root = 0;

pub const FileTree = @This();

/// Freed as a whole by its owner.
arena: Allocator,
limits: Limits,
inodes: std.ArrayList(Inode),
text_size: u64 = 0,
names: u32 = 0,
steps: u64 = 0,

pub fn init(arena: Allocator, limits: Limits) Error!FileTree {
    var tree: FileTree = .{ .arena = arena, .limits = limits, .inodes = .empty };
    _ = try tree.add(.{ .kind = .directory, .mode = 0o755 });
    return tree;
}

pub fn at(tree: *const FileTree, index: u32) *Inode {
    return &tree.inodes.items[index];
}

/// Adds an inode that no directory names yet.
pub fn add(tree: *FileTree, inode: Inode) Error!u32 {
    if (tree.inodes.items.len >= tree.limits.inodes_max) return error.TooManyFiles;
    try tree.inodes.append(tree.arena, inode);
    return @intCast(tree.inodes.items.len - 1);
}

/// Copies a text of an archive.
pub fn keep(tree: *FileTree, text: []const u8) Error![]const u8 {
    try tree.charge(text.len);
    return tree.arena.dupe(u8, text);
}

pub fn keepXattrs(tree: *FileTree, given: []const Xattr) Error![]const Xattr {
    try tree.charge(given.len * @sizeOf(Xattr));
    const copies = try tree.arena.alloc(Xattr, given.len);
    for (copies, given) |*copy, xattr| copy.* =
        .{ .name = try tree.keep(xattr.name), .value = try tree.keep(xattr.value) };
    return copies;
}

pub fn keepSegments(tree: *FileTree, given: []const Segment) Error![]const Segment {
    try tree.charge(given.len * @sizeOf(Segment));
    return tree.arena.dupe(Segment, given);
}

fn charge(tree: *FileTree, size: usize) Error!void {
    tree.text_size += size;
    if (tree.text_size > tree.limits.text_size_max) return error.NamesTooLarge;
}

/// Names an inode; what had the name before is left out of the tree, unless it has another name.
pub fn put(tree: *FileTree, directory: u32, name: []const u8, child: Child) Error!void {
    if (name.len > name_size_max) return error.NameTooLong;
    const inode = tree.at(child.inode);
    if (inode.kind == .directory) {
        const depth = tree.at(directory).depth + 1;
        if (depth > depth_max) return error.TooDeep;
        inode.depth = depth;
        inode.parent = directory;
    }
    const children = &tree.at(directory).children;
    if (children.getPtr(name)) |before| {
        before.* = child;
        return;
    }
    if (tree.names >= tree.limits.names_max) return error.TooManyFiles;
    tree.names += 1;
    const kept = try tree.keep(name);
    try children.put(tree.arena, kept, child);
}

pub fn remove(tree: *FileTree, directory: u32, name: []const u8) void {
    _ = tree.at(directory).children.swapRemove(name);
}

/// Finds a child; does not follow a link.
pub fn find(tree: *const FileTree, directory: u32, name: []const u8) ?Child {
    return tree.at(directory).children.get(name);
}

/// How a walk treats a directory that is missing.
pub const Absent = union(enum) {
    missing,
    /// Made by this layer, with this time.
    make: struct { layer: u32, mtime: i64 },
};

/// Follows a path to a directory, and links on it, which stay below the root: `..` of the root is
/// the root, and an absolute link starts there.
pub fn walk(tree: *FileTree, path: []const u8, absent: Absent) Error!u32 {
    var links_left: u32 = links_followed_max;
    return tree.walkFrom(root, path, absent, &links_left);
}

fn walkFrom(
    tree: *FileTree,
    from: u32,
    path: []const u8,
    absent: Absent,
    links_left: *u32,
) Error!u32 {
    var here = if (path.len > 0 and path[0] == '/') root else from;
    var names = std.mem.tokenizeScalar(u8, path, '/');
    while (names.next()) |name| {
        tree.steps += 1;
        if (tree.steps > tree.limits.steps_max) return error.PathsTooLong;
        if (std.mem.eql(u8, name, ".")) continue;
        if (std.mem.eql(u8, name, "..")) {
            here = tree.at(here).parent;
            continue;
        }
        const child = tree.find(here, name) orelse {
            here = try tree.makeAbsent(here, name, absent);
            continue;
        };
        const inode = tree.at(child.inode);
        switch (inode.kind) {
            .directory => here = child.inode,
            .symlink => {
                if (links_left.* == 0) return error.LinkCycle;
                links_left.* -= 1;
                // The inodes move when one is added.
                const target = inode.target;
                here = try tree.walkFrom(here, target, absent, links_left);
            },
            else => return error.NotADirectory,
        }
    }
    return here;
}

fn makeAbsent(tree: *FileTree, directory: u32, name: []const u8, absent: Absent) Error!u32 {
    const how = switch (absent) {
        .missing => return error.Missing,
        .make => |how| how,
    };
    const made = try tree.add(.{ .kind = .directory, .mode = 0o755, .mtime = how.mtime });
    try tree.put(directory, name, .{ .inode = made, .layer = how.layer });
    return made;
}

/// Finds what a path names after all links; null if nothing is there.
pub fn lookUp(tree: *FileTree, path: []const u8) Error!?u32 {
    var links_left: u32 = links_followed_max;
    return tree.lookUpFrom(root, path, &links_left) catch |err| switch (err) {
        error.Missing, error.NotADirectory, error.LinkCycle => null,
        else => |other| return other,
    };
}

fn lookUpFrom(tree: *FileTree, from: u32, path: []const u8, links_left: *u32) Error!u32 {
    const trimmed = std.mem.trimEnd(u8, path, "/");
    const slash = std.mem.findScalarLast(u8, trimmed, '/');
    const directory = if (slash) |place| trimmed[0 .. place + 1] else "";
    const name = if (slash) |place| trimmed[place + 1 ..] else trimmed;
    const here = try tree.walkFrom(from, directory, .missing, links_left);
    if (name.len == 0 or std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, ".."))
        return tree.walkFrom(here, name, .missing, links_left);
    const child = tree.find(here, name) orelse return error.Missing;
    const inode = tree.at(child.inode);
    if (inode.kind != .symlink) return child.inode;
    if (links_left.* == 0) return error.LinkCycle;
    links_left.* -= 1;
    const target = inode.target;
    return tree.lookUpFrom(here, target, links_left);
}

const testing = std.testing;

test "links lead through the tree and never out of it, and a cycle is found" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var tree: FileTree = try .init(arena.allocator(), .{});
    const make: Absent = .{ .make = .{ .layer = 0, .mtime = 5 } };
    const deep = try tree.walk("usr/./lib//systemd/", make);
    const file = try tree.add(.{ .kind = .file, .mode = 0o755 });
    try tree.put(deep, "systemd", .{ .inode = file, .layer = 0 });
    for ([_][2][]const u8{
        .{ "sbin", "../../usr/sbin" },
        .{ "lib", "/usr/lib" },
        .{ "a", "b" },
        .{ "b", "a" },
    }) |link| {
        const made = try tree.add(.{ .kind = .symlink, .mode = 0o777, .target = link[1] });
        try tree.put(root, link[0], .{ .inode = made, .layer = 0 });
    }
    const sbin = try tree.walk("/sbin", make);
    try testing.expectEqual(sbin, try tree.walk("usr/sbin", .missing));
    const init_link =
        try tree.add(.{ .kind = .symlink, .mode = 0o777, .target = "/lib/systemd/systemd" });
    try tree.put(sbin, "init", .{ .inode = init_link, .layer = 0 });
    try testing.expectEqual(file, try tree.lookUp("/sbin/init"));
    try testing.expectEqual(file, try tree.lookUp("/../sbin/../lib/systemd/systemd"));
    try testing.expectEqual(null, try tree.lookUp("/a"));
    try testing.expectEqual(null, try tree.lookUp("/sbin/init/x"));
    try testing.expectError(error.LinkCycle, tree.walk("a/x", make));
    try testing.expectError(error.NotADirectory, tree.walk("lib/systemd/systemd/x", make));
    try testing.expectEqual(root, try tree.walk("../../..", .missing));
}

test "the limits hold: inodes, texts, names and depth" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var tree: FileTree =
        try .init(arena.allocator(), .{ .inodes_max = 4, .text_size_max = 300 });
    const make: Absent = .{ .make = .{ .layer = 0, .mtime = 0 } };
    _ = try tree.walk("a/b/c", make);
    try testing.expectError(error.TooManyFiles, tree.walk("d", make));
    try testing.expectError(error.NameTooLong, tree.put(root, &@as([256]u8, @splat('x')), .{
        .inode = 1,
        .layer = 0,
    }));
    try tree.put(root, &@as([255]u8, @splat('x')), .{ .inode = 1, .layer = 0 });
    try testing.expectError(error.NamesTooLarge, tree.keep(&@as([64]u8, @splat('x'))));
    var few: FileTree = try .init(arena.allocator(), .{ .names_max = 1, .steps_max = 3 });
    try testing.expectError(error.TooManyFiles, few.walk("a/b", make));
    _ = try few.walk("a", make);
    try testing.expectError(error.PathsTooLong, few.walk("a", make));
    const attributes: [10]Xattr = @splat(.{ .name = "", .value = "" });
    try testing.expectError(error.NamesTooLarge, tree.keepXattrs(&attributes));
    var deep: FileTree = try .init(arena.allocator(), .{});
    var here: u32 = root;
    for (0..depth_max) |_| {
        const made = try deep.add(.{ .kind = .directory, .mode = 0 });
        try deep.put(here, "d", .{ .inode = made, .layer = 0 });
        here = made;
    }
    const last = try deep.add(.{ .kind = .directory, .mode = 0 });
    try testing.expectError(error.TooDeep, deep.put(here, "d", .{ .inode = last, .layer = 0 }));
}
