//! `bootfarm-edge vdisk list`: the versions of a store, those that cannot be read with the reason, and imports that are not done.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Uuid = base.Uuid;

const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Complaint = @import("../options.zig").Complaint;
const Size = output.Size;

const Options = struct {
    store: ?[]const u8 = null,
    vdisk: ?Uuid = null,
    json: bool = false,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const gpa = call.init.gpa;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    var text: std.Io.Writer.Allocating = .init(gpa);
    defer text.deinit();
    const damaged = write(&opened, &options, &text.writer) catch |err| return switch (err) {
        error.WriteFailed => error.OutOfMemory,
        else => |other| call.complaint.set(
            "The store {s} cannot be listed: it {s}.",
            .{ opened.path, store_module.files.sentence(other) },
        ),
    };
    call.terminal.out(text.written());
    return if (damaged > 0) 1 else 0;
}

/// How many cannot be read.
fn write(
    opened: *open_store.OpenStore,
    options: *const Options,
    writer: *std.Io.Writer,
) (std.Io.Writer.Error || store_module.files.Error)!usize {
    if (!options.json) try writer.print("{s:<38}{s:<38}{s:>6}  {s:>10}  {s:<22}{s}\n", .{
        "version", "parent", "number", "size", "made", "name",
    });
    var damaged: usize = 0;
    var id: ?Uuid = null;
    while (try opened.store.nextVersion(id)) |found| {
        id = found;
        const manifest = opened.store.manifestOf(found) catch |err| {
            damaged += 1;
            try writeProblem(opened, options, found, err, writer);
            continue;
        };
        if (options.vdisk) |vdisk| if (!manifest.vdisk.eql(vdisk)) continue;
        if (options.json) {
            var json: std.json.Stringify = .{ .writer = writer };
            try output.writeVersion(&json, &manifest);
            try writer.writeByte('\n');
            continue;
        }
        var buffer: [32]u8 = undefined;
        const parent = manifest.parent.toText();
        try writer.print("{f}  {s:<38}{d:>6}  {s:>10}  {f}  {s}\n", .{
            found,
            if (manifest.isBase()) "-" else &parent,
            manifest.number,
            std.mem.print(&buffer, "{f}", .{Size{ .bytes = manifest.disk_size }}) catch unreachable,
            output.Instant{ .unix_ms = manifest.created_unix_ms },
            manifest.name.constSlice(),
        });
    }
    try writeImports(opened, options, writer);
    return damaged;
}

fn writeProblem(
    opened: *open_store.OpenStore,
    options: *const Options,
    id: Uuid,
    problem: store_module.store_dir.VersionError,
    writer: *std.Io.Writer,
) std.Io.Writer.Error!void {
    var complaint: Complaint = .{};
    open_store.complainOfVersion(opened.path, id, problem, &complaint) catch {};
    if (!options.json) return writer.print("{f}  {s}\n", .{ id, complaint.text() });
    var json: std.json.Stringify = .{ .writer = writer };
    try json.beginObject();
    try output.field(&json, "version", id);
    try output.field(&json, "problem", complaint.text());
    try json.endObject();
    try writer.writeByte('\n');
}

fn writeImports(
    opened: *open_store.OpenStore,
    options: *const Options,
    writer: *std.Io.Writer,
) (std.Io.Writer.Error || store_module.files.Error)!void {
    const files = opened.on.files();
    var id: ?Uuid = null;
    while (try store_module.import_checkpoint.next(files, id)) |found| {
        id = found;
        const checkpoint = Checkpoint.read(files, found) catch continue;
        if (options.vdisk) |vdisk| if (!checkpoint.vdisk.eql(vdisk)) continue;
        if (!options.json) {
            try writer.print("{f}  is being imported, or was until it was interrupted: {f} of {s}\n", .{
                found,
                Size{ .bytes = checkpoint.position },
                checkpoint.path.constSlice(),
            });
            continue;
        }
        var json: std.json.Stringify = .{ .writer = writer };
        try json.beginObject();
        try output.field(&json, "import", found);
        try output.field(&json, "vdisk", checkpoint.vdisk);
        try output.field(&json, "source", checkpoint.path.constSlice());
        try output.field(&json, "positionBytes", checkpoint.position);
        try output.field(&json, "sizeBytes", checkpoint.source_size);
        try json.endObject();
        try writer.writeByte('\n');
    }
}
