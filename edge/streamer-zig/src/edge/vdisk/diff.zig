//! `bootfarm-edge vdisk diff`: counts the bytes in which two versions differ; reads nodes only.

const base = @import("base");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const block = store_module.block;
const compare = store_module.compare;

pub const Options = struct {
    version: ?Uuid = null,
    from: ?Uuid = null,
};

const Difference = struct { ranges: u64 = 0, blocks: u64 = 0 };

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const ids = [_]Uuid{
        try call.need(options.from, "--from ID"),
        try call.need(options.version, "--version ID"),
    };
    var trees: [2]compare.Tree = undefined;
    var versions: [2]store_module.OpenVersion = undefined;
    for (ids, 0..) |id, index| {
        errdefer for (versions[0..index]) |*version| version.close();
        // Kept open, so that nobody deletes it in the meantime.
        versions[index] = call.store().openVersion(id) catch |err| return call.failVersion(id, err);
        const manifest = &versions[index].manifest;
        trees[index] = .{ .root = manifest.root, .level = manifest.rootLevel() };
    }
    defer for (&versions) |*version| version.close();
    var found: Difference = .{};
    var comparison: compare.Comparison(*Difference) =
        .{ .nodes = &call.store().nodes, .context = &found, .report = add };
    comparison.run(trees[0], trees[1]) catch |err| return call.fail(
        "The versions cannot be compared: {s}; see bootfarm-edge vdisk verify --store {s}.",
        .{
            if (err == error.Damaged) "a node of one is damaged" else "the store cannot be read",
            call.path(),
        },
    );
    const bytes = found.blocks * block.block_size;
    call.print(
        .{ .from = ids[0], .version = ids[1], .ranges = found.ranges, .differentBytes = bytes },
        "{f} differ, in {d} places",
        .{ output.Size{ .bytes = bytes }, found.ranges },
    );
    return 0;
}

fn add(found: *Difference, range: compare.Range) void {
    found.ranges += 1;
    found.blocks += range.count;
}
