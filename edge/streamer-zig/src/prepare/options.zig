//! Parses the words after `bootfarm-target prepare`.

const std = @import("std");

pub const Options = @This();

/// The root to prepare; `/` is the running system.
root: [:0]const u8 = "/",
/// `ram=SIZE` or `ram=PERCENT%`; null keeps the root's choice, or uses `write_cache_default`.
write_cache: ?[]const u8 = null,
is_dry_run: bool = false,
is_undo: bool = false,
makes_initramfs: bool = true,

pub const write_cache_default = "ram=50%";
/// Leaves space for a path inside the root.
const root_size_max = 1024;

pub const Error = error{
    UnknownOption,
    ValueMissing,
    RootInvalid,
    WriteCacheInvalid,
    Contradiction,
};

/// Sets `last_word` to the wrong word, for the message.
pub fn parse(words: []const [*:0]const u8, last_word: *[]const u8) Error!Options {
    var options: Options = .{};
    var index: usize = 0;
    while (index < words.len) : (index += 1) {
        const word = std.mem.span(words[index]);
        last_word.* = word;
        if (std.mem.eql(u8, word, "--dry-run")) options.is_dry_run = true //
        else if (std.mem.eql(u8, word, "--undo")) options.is_undo = true //
        else if (std.mem.eql(u8, word, "--no-initramfs")) options.makes_initramfs = false //
        else if (std.mem.eql(u8, word, "--root")) {
            options.root = try valueAfter(words, &index);
            if (options.root.len == 0 or options.root.len > root_size_max) return error.RootInvalid;
        } else if (std.mem.eql(u8, word, "--write-cache")) {
            options.write_cache = try valueAfter(words, &index);
            last_word.* = options.write_cache.?;
            if (!isWriteCache(options.write_cache.?)) return error.WriteCacheInvalid;
        } else return error.UnknownOption;
    }
    if (options.is_undo and options.write_cache != null) return error.Contradiction;
    return options;
}

pub fn explain(reason: Error) []const u8 {
    return switch (reason) {
        error.UnknownOption => "prepare has no such option; see bootfarm-target prepare --help",
        error.ValueMissing => "this option needs a value",
        error.RootInvalid => "--root is the directory of a root file system",
        error.WriteCacheInvalid => "--write-cache is ram=SIZE with k, m or g behind the " ++
            "number, such as ram=2g, or ram=1% to ram=95% of the machine's memory",
        error.Contradiction => "--undo removes the write cache too; leave one of them out",
    };
}

fn valueAfter(words: []const [*:0]const u8, index: *usize) Options.Error![:0]const u8 {
    if (index.* + 1 == words.len) return error.ValueMissing;
    index.* += 1;
    return std.mem.span(words[index.*]);
}

/// The size for tmpfs, after `ram=`.
fn isWriteCache(text: []const u8) bool {
    const size = std.mem.cutPrefix(u8, text, "ram=") orelse return false;
    if (size.len < 2) return false;
    const number = std.fmt.parseInt(u32, size[0 .. size.len - 1], 10) catch return false;
    return switch (size[size.len - 1]) {
        '%' => number >= 1 and number <= 95,
        'k', 'm', 'g', 'K', 'M', 'G' => number >= 1,
        else => false,
    };
}

const testing = std.testing;

test "every option is parsed" {
    var word: []const u8 = "";
    const words = [_][*:0]const u8{ "--root", "/mnt", "--write-cache", "ram=2g", "--dry-run" };
    const options: Options = try .parse(&words, &word);
    try testing.expectEqualStrings("/mnt", options.root);
    try testing.expectEqualStrings("ram=2g", options.write_cache.?);
    try testing.expect(options.is_dry_run and options.makes_initramfs and !options.is_undo);
    const undo: Options = try .parse(&.{ "--undo", "--no-initramfs" }, &word);
    try testing.expect(undo.is_undo and !undo.makes_initramfs);
}

test "each wrong word has its own error and is named" {
    var word: []const u8 = "";
    const cases = [_]struct {
        words: []const [*:0]const u8,
        reason: Options.Error,
        word: []const u8,
    }{
        .{ .words = &.{"--force"}, .reason = error.UnknownOption, .word = "--force" },
        .{ .words = &.{"--root"}, .reason = error.ValueMissing, .word = "--root" },
        .{ .words = &.{ "--root", "" }, .reason = error.RootInvalid, .word = "--root" },
        .{
            .words = &.{ "--write-cache", "disk=1g" },
            .reason = error.WriteCacheInvalid,
            .word = "disk=1g",
        },
        .{
            .words = &.{ "--write-cache", "ram=2g", "--undo" },
            .reason = error.Contradiction,
            .word = "--undo",
        },
    };
    for (cases) |case| {
        try testing.expectError(case.reason, Options.parse(case.words, &word));
        try testing.expectEqualStrings(case.word, word);
        try testing.expect(Options.explain(case.reason).len > 0);
    }
}

test "a write cache is an amount of memory" {
    for ([_][]const u8{ "ram=1%", "ram=95%", "ram=512m", "ram=2G", "ram=800000k" }) |good|
        try testing.expect(isWriteCache(good));
    for ([_][]const u8{ "", "ram=", "ram=%", "ram=96%", "ram=0g", "2g", "ram=-1g", "ram=1t" }) |bad|
        try testing.expect(!isWriteCache(bad));
}
