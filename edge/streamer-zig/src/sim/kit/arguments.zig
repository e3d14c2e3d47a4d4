//! Parses the command line of a simulation: flags, numbers, texts, and types with `parse`.

const std = @import("std");

/// An option, and the field that it sets.
pub const Name = struct { []const u8, []const u8 };

/// A `bool` is a flag; other fields take the next argument. Types that are unknown here have
/// `parse`.
pub fn parse(
    comptime Options: type,
    comptime names: []const Name,
    arguments: []const [:0]const u8,
) error{Usage}!Options {
    var options: Options = .{};
    var index: usize = 0;
    while (index < arguments.len) : (index += 1) {
        var is_known = false;
        inline for (names) |name| if (std.mem.eql(u8, arguments[index], name[0])) {
            is_known = true;
            const field = &@field(options, name[1]);
            if (@TypeOf(field.*) == bool) {
                field.* = true;
            } else {
                index += 1;
                if (index == arguments.len) return error.Usage;
                field.* = try valueOf(@TypeOf(field.*), arguments[index]);
                // A value is no option.
                break;
            }
        };
        if (!is_known) return error.Usage;
    }
    return options;
}

fn valueOf(comptime Value: type, text: [:0]const u8) error{Usage}!Value {
    return switch (@typeInfo(Value)) {
        .optional => |optional| try valueOf(optional.child, text),
        .int => std.fmt.parseInt(Value, text, 10) catch error.Usage,
        .pointer => text,
        else => Value.parse(text) orelse error.Usage,
    };
}

const testing = std.testing;

test "flags, numbers and texts are read, and nothing else" {
    const Colour = enum {
        red,
        blue,

        fn parse(text: []const u8) ?@This() {
            return std.meta.stringToEnum(@This(), text);
        }
    };
    const Options = struct {
        is_loud: bool = false,
        count: u8 = 1,
        at: ?u64 = null,
        name: ?[]const u8 = null,
        colour: Colour = .red,
    };
    const names = [_]Name{
        .{ "--loud", "is_loud" }, .{ "--count", "count" },   .{ "--at", "at" },
        .{ "--name", "name" },    .{ "--colour", "colour" },
    };
    const options = try parse(Options, &names, &.{
        "--count", "7", "--loud", "--name", "--at", "--at", "9", "--colour", "blue",
    });
    const expected: Options =
        .{ .is_loud = true, .count = 7, .at = 9, .name = "--at", .colour = .blue };
    try testing.expectEqualDeep(expected, options);
    try testing.expectError(error.Usage, parse(Options, &names, &.{"--count"}));
    try testing.expectError(error.Usage, parse(Options, &names, &.{ "--count", "256" }));
    try testing.expectError(error.Usage, parse(Options, &names, &.{ "--colour", "green" }));
    try testing.expectError(error.Usage, parse(Options, &names, &.{"loud"}));
}
