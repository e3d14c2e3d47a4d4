//! Parses the options of `bootfarm-edge vdisk ...`: each subcommand names its own as the fields of
//! a struct, and all take those of `Common`. `--disk-size` is the field `disk_size`; a bool is a
//! switch; `positional` is the argument without a name; options that several subcommands share are
//! a nested struct in each.

const std = @import("std");
const base = @import("base");
const options_module = @import("../options.zig");

const Complaint = options_module.Complaint;
const Error = options_module.Error;
const Uuid = base.Uuid;

/// The options of every subcommand.
pub const Common = struct {
    store: ?[]const u8 = null,
    json: bool = false,
};

/// `command` is the name of the subcommand, such as `import`.
pub fn parse(
    comptime Options: type,
    comptime command: []const u8,
    rest: []const [:0]const u8,
    common: *Common,
    complaint: *Complaint,
) Error!Options {
    var options: Options = .{};
    var arguments: options_module.Arguments =
        .{ .command = "vdisk " ++ command, .rest = rest, .complaint = complaint };
    while (arguments.rest.len > 0) {
        const argument = arguments.rest[0];
        if (!std.mem.startsWith(u8, argument, "--")) {
            arguments.rest = arguments.rest[1..];
            try setPositional(Options, &options, argument, &arguments);
            continue;
        }
        const option = (try arguments.next()).?;
        if (try set(Options, &options, option.name, option.value, &arguments)) continue;
        if (try set(Common, common, option.name, option.value, &arguments)) continue;
        return arguments.noOption(option.name);
    }
    return options;
}

fn setPositional(
    comptime Options: type,
    options: *Options,
    text: []const u8,
    arguments: *const options_module.Arguments,
) Error!void {
    if (@hasField(Options, "positional")) if (options.positional == null) {
        options.positional = text;
        return;
    };
    return arguments.notAnOption(text);
}

/// Returns false if there is no option of that name.
fn set(
    comptime Options: type,
    options: *Options,
    name: []const u8,
    value: ?[]const u8,
    arguments: *options_module.Arguments,
) Error!bool {
    inline for (@typeInfo(Options).@"struct".field_names) |field| {
        if (comptime std.mem.eql(u8, field, "positional")) continue;
        const Field = @FieldType(Options, field);
        if (@typeInfo(Field) == .@"struct") {
            if (try set(Field, &@field(options, field), name, value, arguments)) return true;
            continue;
        }
        if (std.mem.eql(u8, name, comptime optionOf(field))) {
            if (Field == bool) {
                if (value != null) return arguments.complaint.set("{s} takes no value.", .{name});
                @field(options, field) = true;
                return true;
            }
            const text = try arguments.value(name, value);
            @field(options, field) = switch (Field) {
                ?[]const u8 => text,
                ?Uuid => Uuid.parse(text) catch return arguments.complaint.set(
                    "{s} is an id such as 6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff, not '{s}'.",
                    .{ name, text },
                ),
                ?u32 => positive(text) orelse return arguments.complaint.set(
                    "{s} is a number from 1 to 4294967295, not '{s}'.",
                    .{ name, text },
                ),
                else => @compileError("no option has this type"),
            };
            return true;
        }
    }
    return false;
}

fn positive(text: []const u8) ?u32 {
    const number = std.fmt.parseInt(u32, text, 10) catch return null;
    return if (number == 0) null else number;
}

fn optionOf(comptime field: []const u8) []const u8 {
    comptime {
        var name: [field.len]u8 = field[0..field.len].*;
        std.mem.replaceScalar(u8, &name, '_', '-');
        const text = "--" ++ name;
        return text;
    }
}

const testing = std.testing;

test "options are found by the names of the fields, and mistakes are named" {
    const Options = struct {
        positional: ?[]const u8 = null,
        shared: struct { no_boot_files: bool = false } = .{},
        version: ?Uuid = null,
        number: ?u32 = null,
    };
    var complaint: Complaint = .{};
    const id = "6d5f0d1c-3a83-4c5b-9a50-0d5b8cb2a6ff";
    var common: Common = .{};
    const found =
        try parse(
            Options,
            "test",
            &.{ "disk", "--store=/s", "--no-boot-files", "--version", id, "--number", "7" },
            &common,
            &complaint,
        );
    try testing.expectEqualStrings("disk", found.positional.?);
    try testing.expectEqualStrings("/s", common.store.?);
    try testing.expect(found.shared.no_boot_files and !common.json);
    try testing.expectEqual(7, found.number.?);
    try testing.expect(found.version.?.eql(try Uuid.parse(id)));
    for ([_]struct { [:0]const u8, []const u8 }{
        .{ "--absent", "There is no option --absent; see bootfarm-edge vdisk test --help." },
        .{ "--store", "--store needs a value." },
        .{ "--shared", "There is no option --shared; see bootfarm-edge vdisk test --help." },
        .{ "--json=1", "--json takes no value." },
        .{ "--number=0", "--number is a number from 1 to 4294967295, not '0'." },
    }) |case| {
        try testing.expectError(
            error.Wrong,
            parse(Options, "test", &.{case[0]}, &common, &complaint),
        );
        try testing.expectEqualStrings(case[1], complaint.text());
    }
    try testing.expectError(
        error.Wrong,
        parse(Options, "test", &.{ "a", "b" }, &common, &complaint),
    );
}
