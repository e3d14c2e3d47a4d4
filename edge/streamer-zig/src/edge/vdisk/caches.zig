//! `bootfarm-edge vdisk caches`: lists the writes of devices that stay on this edge's disk:
//! persistent write caches and private images. Works beside a running edge, and with a directory of
//! plain files.

const std = @import("std");
const store_module = @import("store");
const Call = @import("subcommand.zig");
const output = @import("output.zig");

pub const Options = struct {};

pub fn make(call: *const Call, options: *const Options, path: []const u8) Call.Error!u8 {
    _ = options;
    var on = store_module.LinuxFiles.open(path) catch |err|
        return call.fail("The store directory {s} {s}.", .{
            path, store_module.files.sentence(err),
        });
    defer on.close();
    var text: std.Io.Writer.Allocating = .init(call.gpa);
    defer text.deinit();
    const damaged = write(on.files(), call.is_json, &text.writer) catch |err| return switch (err) {
        error.WriteFailed => error.OutOfMemory,
        else => |other| call.fail("The write caches in {s} cannot be listed: it {s}.", .{
            path, store_module.files.sentence(other),
        }),
    };
    call.terminal.out(text.written());
    return if (damaged > 0) Call.exit_failed else 0;
}

/// Returns how many cannot be read.
fn write(
    files: store_module.Files,
    is_json: bool,
    writer: *std.Io.Writer,
) (std.Io.Writer.Error || store_module.files.Error)!usize {
    if (!is_json) try writer.print("{s:<38}{s:<17}{s:<38}{s:>10}{s:>11}\n", .{
        "device", "class", "version", "used", "limit",
    });
    var damaged: usize = 0;
    var walk: store_module.device_layers.LayerIterator = .{ .files = files };
    while (try walk.next()) |found| {
        const head = found.head catch |err| {
            damaged += 1;
            if (is_json) {
                var json: std.json.Stringify = .{ .writer = writer };
                try json.write(.{ .layer = found.name, .problem = @errorName(err) });
                try writer.writeByte('\n');
            } else try writer.print("{s:<38}cannot be read ({t})\n", .{ found.name, err });
            continue;
        };
        const binding = &head.binding;
        const used = usedBytes(files, found.name) catch 0;
        if (!is_json) {
            try writer.print("{f}  {t:<17}{f}  {f:>10}{f:>11}\n", .{
                binding.device_id,
                binding.class,
                binding.version_id,
                std.fmt.alt(output.Size{ .bytes = used }, .format),
                std.fmt.alt(output.Size{ .bytes = head.limit_bytes }, .format),
            });
            continue;
        }
        var json: std.json.Stringify = .{ .writer = writer };
        try json.write(.{
            .layer = found.name,
            .device = &binding.device_id.toText(),
            .class = binding.class,
            .version = &binding.version_id.toText(),
            .usedBytes = used,
            .limitBytes = head.limit_bytes,
        });
        try writer.writeByte('\n');
    }
    return damaged;
}

fn usedBytes(files: store_module.Files, layer: []const u8) store_module.files.Error!u64 {
    var name: store_module.files.Name = undefined;
    const path = std.mem.print(
        &name,
        store_module.device_layers.parent ++ "/{s}/data",
        .{layer},
    ) catch return 0;
    const handle = try files.open(path, .read);
    defer files.close(handle);
    return files.allocated(handle);
}
