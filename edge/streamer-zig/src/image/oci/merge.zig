//! Applies layers to a tree, from the lowest on (OCI image specification 1.1, "Image Layer
//! Filesystem Changeset"): entries replace what is there, directories keep their content, and
//! whiteouts hide what lower layers have. No path leads out of the tree.

const std = @import("std");
const fault_module = @import("fault.zig");
const FileTree = @import("../ext4/file_tree.zig");
const TarReader = @import("tar.zig");
const Entry = TarReader.Entry;
const Fault = fault_module.Fault;

const whiteout = ".wh.";
/// Hides all that lower layers have in its directory.
const opaque_whiteout = ".wh..wh..opq";
/// Others that begin so are notes of AUFS for itself.
const special_whiteout = ".wh..wh.";

const Name = struct { directory: []const u8, name: []const u8 };

pub fn apply(tree: *FileTree, entry: *const Entry, layer: u32) Fault!void {
    const path = try nameOf(entry.path);
    const place: FileTree.Absent = .{ .make = .{ .layer = layer, .mtime = entry.mtime } };
    if (path.name.len == 0) {
        if (entry.kind != .directory) return error.PathInvalid;
        return setProperties(tree, FileTree.root, entry);
    }
    if (std.mem.startsWith(u8, path.name, whiteout)) {
        const directory = tree.walk(path.directory, .missing) catch |err| switch (err) {
            // Nothing is there to be hidden.
            error.Missing, error.NotADirectory => return,
            else => |other| return other,
        };
        return hide(tree, directory, path.name, layer);
    }
    const directory = try tree.walk(path.directory, place);
    if (entry.kind == .hard_link) return link(tree, directory, path.name, entry, layer);
    if (entry.kind == .directory) if (tree.find(directory, path.name)) |child| {
        if (tree.at(child.inode).kind == .directory) {
            try tree.put(directory, path.name, .{ .inode = child.inode, .layer = layer });
            return setProperties(tree, child.inode, entry);
        }
    };
    const made = try tree.add(.{ .kind = kindOf(entry.kind), .mode = entry.mode });
    try setProperties(tree, made, entry);
    const inode = tree.at(made);
    switch (entry.kind) {
        .file => {
            inode.size = entry.size;
            inode.layer = layer;
            inode.offset = entry.offset;
            if (entry.segments) |segments| inode.segments = try tree.keepSegments(segments);
        },
        .symlink => {
            if (entry.target.len == 0 or entry.target.len > FileTree.path_size_max)
                return error.PathInvalid;
            inode.target = try tree.keep(entry.target);
            inode.mode = 0o777;
        },
        .char_device, .block_device => {
            // As many bits as the kernel has for them.
            if (entry.major > 0xfff or entry.minor > 0xfffff) return error.NumberInvalid;
            inode.major = entry.major;
            inode.minor = entry.minor;
        },
        .directory, .fifo => {},
        .hard_link => unreachable,
    }
    try tree.put(directory, path.name, .{ .inode = made, .layer = layer });
}

/// Absolute paths begin at the tree's root, and `..` does not lead out of it.
fn nameOf(path: []const u8) Fault!Name {
    if (path.len > FileTree.path_size_max) return error.PathInvalid;
    if (std.mem.findScalar(u8, path, 0) != null) return error.PathInvalid;
    var rest = path;
    while (true) {
        rest = std.mem.trimEnd(u8, rest, "/");
        const slash = std.mem.findScalarLast(u8, rest, '/');
        const name = if (slash) |at| rest[at + 1 ..] else rest;
        const directory = if (slash) |at| rest[0..at] else "";
        if (std.mem.eql(u8, name, "..")) return error.PathInvalid;
        if (!std.mem.eql(u8, name, ".")) return .{ .directory = directory, .name = name };
        rest = directory;
    }
}

fn kindOf(kind: TarReader.Kind) FileTree.Kind {
    return switch (kind) {
        .file, .hard_link => .file,
        .directory => .directory,
        .symlink => .symlink,
        .char_device => .char_device,
        .block_device => .block_device,
        .fifo => .fifo,
    };
}

fn setProperties(tree: *FileTree, index: u32, entry: *const Entry) Fault!void {
    const xattrs = try tree.keepXattrs(entry.xattrs);
    const inode = tree.at(index);
    inode.mode = entry.mode;
    inode.uid = entry.uid;
    inode.gid = entry.gid;
    inode.mtime = entry.mtime;
    inode.mtime_ns = entry.mtime_ns;
    inode.xattrs = xattrs;
}

fn link(
    tree: *FileTree,
    directory: u32,
    name: []const u8,
    entry: *const Entry,
    layer: u32,
) Fault!void {
    const target = try nameOf(entry.target);
    const target_directory = tree.walk(target.directory, .missing) catch |err| switch (err) {
        error.Missing => return error.LinkTargetMissing,
        else => |other| return other,
    };
    const child = tree.find(target_directory, target.name) orelse return error.LinkTargetMissing;
    if (tree.at(child.inode).kind == .directory) return error.LinkToDirectory;
    try tree.put(directory, name, .{ .inode = child.inode, .layer = layer });
}

/// A whiteout hides what lower layers have, not what its own layer adds, whichever comes first.
fn hide(tree: *FileTree, directory: u32, name: []const u8, layer: u32) Fault!void {
    if (std.mem.eql(u8, name, opaque_whiteout)) return removeLower(tree, directory, layer);
    if (std.mem.startsWith(u8, name, special_whiteout)) return;
    const hidden = name[whiteout.len..];
    const child = tree.find(directory, hidden) orelse return;
    const is_directory = tree.at(child.inode).kind == .directory;
    if (is_directory) removeLower(tree, child.inode, layer);
    const is_empty = !is_directory or tree.at(child.inode).children.count() == 0;
    if (child.layer < layer and is_empty) tree.remove(directory, hidden);
}

/// Recurses no deeper than the tree's limit. A layer adds nothing for lower ones, so that a second
/// whiteout in it costs nothing.
fn removeLower(tree: *FileTree, directory: u32, layer: u32) void {
    const inode = tree.at(directory);
    if (inode.hidden_by == layer) return;
    inode.hidden_by = layer;
    const children = &inode.children;
    var index: usize = 0;
    while (index < children.count()) {
        const child = children.values()[index];
        const is_directory = tree.at(child.inode).kind == .directory;
        if (is_directory) removeLower(tree, child.inode, layer);
        const is_empty = !is_directory or tree.at(child.inode).children.count() == 0;
        if (child.layer < layer and is_empty) {
            children.swapRemoveAt(index);
        } else index += 1;
    }
}
