//! `bootfarm-edge vdisk list`: lists the versions of a store, those that cannot be read with the
//! reason, the writes for versions that are not sealed, and unfinished imports.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Complaint = @import("../options.zig").Complaint;
const Size = output.Size;
const Usage = store_module.usage.Usage;

pub const Options = struct {
    vdisk: ?Uuid = null,
    /// The space of each version, alone and shared: reads all nodes of the store.
    sizes: bool = false,
};

const Error = error{OutOfMemory} || store_module.files.Error;

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    const damaged = list(call, options) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => |other| call.fail("The store {s} cannot be listed: it {s}.", .{
            call.path(), store_module.files.sentence(other),
        }),
    };
    return if (damaged > 0) Call.exit_failed else 0;
}

/// Returns how many cannot be read.
fn list(call: *const Call, options: *const Options) Error!usize {
    const store = call.store();
    // Sizes are unknown where a manifest or a node cannot be read; the versions are listed all the
    // same.
    var usage: ?Usage = if (!options.sizes)
        null
    else
        Usage.of(call.gpa, store) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            else => null,
        };
    defer if (usage) |*known| known.deinit();
    if (!call.is_json) call.print(.{}, "{s:<38}{s:<38}{s:>6}  {s:>10}  {s:<22}{s}{s}", .{
        "version", "parent", "number", "size", "made", if (options.sizes) "alone       shared      " else "", "name",
    });
    var damaged: usize = 0;
    var id: ?Uuid = null;
    while (try store.nextVersion(id)) |found| {
        id = found;
        const manifest = store.manifestOf(found) catch |err| {
            // Deleted in the meantime.
            if (err == error.NotFound) continue;
            damaged += 1;
            printProblem(call, found, err);
            continue;
        };
        if (options.vdisk) |vdisk| if (!manifest.vdisk.eql(vdisk)) continue;
        const sizes = if (usage) |*known| known.sizesOf(store, &manifest) catch null else null;
        printVersion(call, &manifest, sizes);
    }
    try printLayers(call);
    try printImports(call, options);
    return damaged;
}

fn printVersion(
    call: *const Call,
    manifest: *const store_module.Manifest,
    sizes: ?store_module.usage.Sizes,
) void {
    var buffers: [2][32]u8 = undefined;
    var sizes_buffer: [64]u8 = undefined;
    const parent = manifest.parent.toText();
    const shown_sizes = if (sizes) |known| std.mem.print(&sizes_buffer, "{s:<12}{s:<12}", .{
        std.mem.print(&buffers[0], "{f}", .{Size{ .bytes = known.own }}) catch unreachable,
        std.mem.print(&buffers[1], "{f}", .{Size{ .bytes = known.shared }}) catch unreachable,
    }) catch unreachable else "";
    var buffer: [32]u8 = undefined;
    call.print(
        output.Version{ .manifest = manifest, .sizes = sizes },
        "{f}  {s:<38}{d:>6}  {s:>10}  {f}  {s}{s}{s}{s}",
        .{
            manifest.version,
            if (manifest.isBase()) "-" else &parent,
            manifest.number,
            std.mem.print(&buffer, "{f}", .{Size{ .bytes = manifest.disk_size }}) catch unreachable,
            output.Instant{ .unix_ms = manifest.created_unix_ms },
            shown_sizes,
            manifest.name.constSlice(),
            if (manifest.note.count > 0) ": " else "",
            manifest.note.constSlice(),
        },
    );
}

fn printProblem(call: *const Call, id: Uuid, problem: open_store.VersionProblem) void {
    var complaint: Complaint = .{};
    open_store.explainVersion(call.path(), id, problem, &complaint) catch {};
    call.print(.{ .version = id, .problem = complaint.text() }, "{f}  {s}", .{
        id, complaint.text(),
    });
}

fn printLayers(call: *const Call) Error!void {
    var id: ?Uuid = null;
    while (try store_module.seal.nextLayer(call.files(), id)) |found| {
        id = found;
        const bytes = try store_module.seal.layerBytes(call.files(), found) orelse continue;
        call.print(
            .{ .layer = found, .ownBytes = bytes },
            "{f}  is not sealed yet: {f} were written for it",
            .{ found, Size{ .bytes = bytes } },
        );
    }
}

fn printImports(call: *const Call, options: *const Options) Error!void {
    var id: ?Uuid = null;
    while (try store_module.import_checkpoint.next(call.files(), id)) |found| {
        id = found;
        const checkpoint = Checkpoint.read(call.files(), found) catch continue;
        if (options.vdisk) |vdisk| if (!checkpoint.vdisk.eql(vdisk)) continue;
        call.print(
            .{
                .import = found,
                .vdisk = checkpoint.vdisk,
                .source = checkpoint.path.constSlice(),
                .positionBytes = checkpoint.position,
                .sizeBytes = checkpoint.source_size,
            },
            "{f}  is being imported, or was interrupted: {f} of {s}",
            .{ found, Size{ .bytes = checkpoint.position }, checkpoint.path.constSlice() },
        );
    }
}
