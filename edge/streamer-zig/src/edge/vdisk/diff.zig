//! `bootfarm-edge vdisk diff`: how much of two versions differs; reads nodes only.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const block = store_module.block;
const compare = store_module.compare;

const Options = struct {
    store: ?[]const u8 = null,
    version: ?Uuid = null,
    from: ?Uuid = null,
    json: bool = false,
};

const Found = struct { ranges: u64 = 0, blocks: u64 = 0 };

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const gpa = call.init.gpa;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    const ids = [_]Uuid{
        options.from orelse return call.complaint.set("vdisk diff needs --from ID and --version ID.", .{}),
        options.version orelse return call.complaint.set("vdisk diff needs --from ID and --version ID.", .{}),
    };
    var trees: [2]compare.Tree = undefined;
    var versions: [2]store_module.OpenVersion = undefined;
    for (ids, 0..) |id, index| {
        errdefer for (versions[0..index]) |*version| version.close();
        // Open, so that nobody deletes it meanwhile.
        versions[index] = opened.store.openVersion(id) catch |err|
            return open_store.complainOfVersion(opened.path, id, err, call.complaint);
        const manifest = &versions[index].manifest;
        trees[index] = .{ .root = manifest.root, .level = manifest.rootLevel() };
    }
    defer for (&versions) |*version| version.close();
    var found: Found = .{};
    var comparison: compare.Comparison(*Found) = .{ .nodes = &opened.store.nodes, .context = &found, .report = add };
    comparison.run(trees[0], trees[1]) catch |err| return call.complaint.set(
        "The versions cannot be compared: {s}; see bootfarm-edge vdisk verify --store {s}.",
        .{ if (err == error.Damaged) "a node of one is damaged" else "the store cannot be read", opened.path },
    );
    var buffer: [256]u8 = undefined;
    const bytes = found.blocks * block.block_size;
    const text = if (options.json)
        std.mem.print(&buffer, "{{\"from\":\"{f}\",\"version\":\"{f}\",\"ranges\":{d},\"differentBytes\":{d}}}\n", .{
            ids[0], ids[1], found.ranges, bytes,
        })
    else
        std.mem.print(&buffer, "{f} differ, in {d} places\n", .{ output.Size{ .bytes = bytes }, found.ranges });
    call.terminal.out(text catch unreachable);
    return 0;
}

fn add(found: *Found, range: compare.Range) void {
    found.ranges += 1;
    found.blocks += range.count;
}
