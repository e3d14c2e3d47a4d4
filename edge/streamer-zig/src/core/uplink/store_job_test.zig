//! Tests store_job.zig.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const import_source = @import("import_source.zig");
const key_text = @import("key_text.zig");
const store_job = @import("store_job.zig");

const Arguments = store_job.Arguments;
const BundleFile = store_job.BundleFile;
const Made = store_job.Made;
const Order = store_job.Order;
const message_size_max = store_job.message_size_max;
const line_size_max = store_job.line_size_max;
const messageOf = store_job.messageOf;
const parse = store_job.parse;
const parseMade = store_job.parseMade;
const withoutPath = store_job.withoutPath;
const write = store_job.write;
const writeMade = store_job.writeMade;
/// The largest number that JSON keeps exactly.
const number_max = (1 << 53) - 1;
const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

fn expectWords(expected: []const []const u8, order: *const Order) !void {
    var arguments: Arguments = .{};
    try testing.expectEqual(null, write(&arguments, "p", "/s", order));
    try testing.expectEqual(expected.len, arguments.count);
    for (expected, 0..) |word, index| try testing.expectEqualStrings(word, arguments.word(index));
    try testing.expectEqual(null, arguments.words[expected.len]);
}

test "a sentence for the control plane contains a path of this machine only in a command" {
    for ([_][2][]const u8{
        .{
            "Nothing was written for it in the store /srv/store: boot it.",
            "Nothing was written for it in the store: boot it.",
        },
        .{ "The store /srv/store cannot be read.", "The store cannot be read." },
        .{ "the store /srv/stor", "the store /srv/stor" },
        .{
            "see bootfarm-edge vdisk list --store /srv/store.",
            "see bootfarm-edge vdisk list --store /srv/store.",
        },
        .{ "", "" },
    }) |case| {
        const said = withoutPath(messageOf(case[0]), "/srv/store");
        try testing.expectEqualStrings(case[1], said.constSlice());
    }
}

test "a long message is cut behind a sentence, or behind a word" {
    const sentence = "The disk of the store is full.";
    const filler: [message_size_max]u8 = @splat('x');
    const first = messageOf(sentence ++ " " ++ filler);
    try testing.expectEqualStrings(sentence, first.constSlice());
    const words = messageOf("no sentence ends " ++ filler);
    try testing.expectEqualStrings("no sentence ends...", words.constSlice());
    try testing.expectEqual(message_size_max, messageOf(&filler ++ "x").count);
    try testing.expectEqualStrings(&filler, messageOf(&filler).constSlice());
}

test "the last line of a job says what it did" {
    for ([_][2][]const u8{
        .{ "{\"freedBytes\":2800000000}", "freed 2.6 GiB" },
        .{ "{\"checkedBytes\":1023,\"problems\":2}", "read 1023 B, 2 problems" },
        .{
            "{\"writtenBytes\":1048576,\"sharedBytes\":0,\"zeroBytes\":2048}",
            "wrote 1.0 MiB; 0 B were shared with the parent, 2.0 KiB were zeros",
        },
        .{ "{\"dropped\":2,\"device\":\"x\"}", "dropped 2 layers of writes" },
        .{ "{\"cleared\":3}", "cleared 3 boot profiles" },
    }) |case| try testing.expectEqualStrings(case[1], parse(case[0]).?.did.constSlice());
}

test "a job becomes a command line, or a sentence that names what is missing" {
    const two, const three, const four = .{ uuid(2).toText(), uuid(3).toText(), uuid(4).toText() };
    const head = [_][]const u8{ "p", "vdisk" };
    const store = [_][]const u8{ "--json", "--store", "/s" };
    try expectWords(
        &(head ++ .{"merge"} ++ store ++
            .{ "--again", "--version", &two, "--into", &three, "--number", "4" }),
        &.{
            .id = uuid(1),
            .kind = "merge",
            .versionId = uuid(2),
            .intoVersionId = uuid(3),
            .number = 4,
        },
    );
    try expectWords(&(head ++ .{"gc"} ++ store ++ .{"--idle"}), &.{ .id = uuid(1), .kind = "gc" });
    try expectWords(
        &(head ++ .{"verify"} ++ store ++ .{ "--version", &two }),
        &.{ .id = uuid(1), .kind = "adopt", .versionId = uuid(2), .number = 3 },
    );
    try expectWords(
        &(head ++ .{"profile"} ++ store ++ .{ "clear", "--version", &two }),
        &.{ .id = uuid(1), .kind = "clear_profile", .versionId = uuid(2) },
    );
    try expectWords(
        &(head ++ .{"seal"} ++ store ++
            .{
                "--again",
                "--in-store",
                "--version",
                &two,
                "--parent",
                &three,
                "--parent-boot-files",
                "--number",
                "7",
            }),
        &.{
            .id = uuid(1),
            .kind = "seal",
            .versionId = uuid(2),
            .parentVersionId = uuid(3),
            .number = 7,
            .commandLine = "",
            .bootFiles = .parent,
        },
    );
    try expectWords(
        &(head ++ .{"export"} ++ store ++
            .{ "--again", "--in-store", "--version", &two, "--format", "vhdx" }),
        &.{ .id = uuid(1), .kind = "export", .versionId = uuid(2), .format = "vhdx" },
    );
    try expectWords(
        &(head ++ .{"import"} ++ store ++ .{
            "--again",
            "imports/a.raw",
            "--in-store",
            "--version",
            &two,
            "--vdisk",
            &four,
        } ++
            .{ "--add-modules", "crc32c_generic,r8125" } ++
            .{ "--kernel", "imports/k", "--cmdline", "quiet splash", "--number", "1" }),
        &.{
            .id = uuid(1),
            .kind = "import",
            .vdiskId = uuid(4),
            .versionId = uuid(2),
            .number = 1,
            .sourcePath = "imports/a.raw",
            .kernelPath = "imports/k",
            .commandLine = "quiet splash",
            .modules = &.{ "crc32c_generic", "r8125" },
        },
    );
    var arguments: Arguments = .{};
    const import: Order =
        .{
            .id = uuid(1),
            .kind = "import",
            .vdiskId = uuid(4),
            .versionId = uuid(2),
            .number = 1,
            .sourcePath = "a",
        };
    var dashed, var no_source, var no_kernel, var no_module = .{ import, import, import, import };
    no_module.modules = &.{"r8125,--force"};
    dashed.sourcePath = "--abandon";
    no_source.sourcePath = null;
    no_kernel.kernelPath = "";
    for ([_]Order{
        .{ .id = uuid(1), .kind = "merge", .versionId = uuid(2), .number = 1 },
        .{ .id = uuid(1), .kind = "merge", .intoVersionId = uuid(2), .number = 1 },
        .{ .id = uuid(1), .kind = "merge", .versionId = uuid(2), .intoVersionId = uuid(3) },
        .{
            .id = uuid(1),
            .kind = "merge",
            .versionId = uuid(2),
            .intoVersionId = uuid(3),
            .number = 1 << 32,
        },
        .{ .id = uuid(1), .kind = "seal", .versionId = uuid(2), .number = 1 },
        .{ .id = uuid(1), .kind = "delete" },
        .{ .id = uuid(1), .kind = "adopt" },
        .{ .id = uuid(1), .kind = "export", .versionId = uuid(2) },
        .{ .id = uuid(1), .kind = "export", .versionId = uuid(2), .format = "--force" },
        .{ .id = uuid(1), .kind = "export", .format = "raw" },
        .{ .id = uuid(1), .kind = "defragment" },
        dashed,
        no_source,
        no_kernel,
        no_module,
    }) |order| try testing.expect(write(&arguments, "p", "/s", &order) != null);
}

test "a difference is packed into its file, and what was fetched is imported for its root" {
    const file = "/s/differences/" ++ uuid(3).toText();
    const head = [_][]const u8{ "p", "vdisk" };
    const rest = [_][]const u8{ "--json", "--store", "/s", "--again", file };
    const digits: [64]u8 = @splat('0');
    try expectWords(
        &(head ++ .{"pack"} ++ rest ++
            .{ "--version", &uuid(2).toText(), "--base", &uuid(4).toText() }),
        &.{
            .id = uuid(1),
            .kind = "pack",
            .versionId = uuid(2),
            .baseVersionId = uuid(4),
            .differenceId = uuid(3),
        },
    );
    const root: [64]u8 = @splat('0');
    try expectWords(&(head ++ .{"import"} ++ rest ++
        .{ "--version", &uuid(2).toText(), "--root", &root }), &.{
        .id = uuid(1),
        .kind = "fetch",
        .versionId = uuid(2),
        .differenceId = uuid(3),
        .differenceSizeBytes = 5,
        .differenceListSha256 = &digits,
        .manifest = .{ .root = &key_text.write(@splat(0)), .counter = 1 },
    });
    var arguments: Arguments = .{};
    const nameless: Order = .{ .id = uuid(1), .kind = "fetch", .versionId = uuid(2) };
    try testing.expectEqualStrings(
        "it does not name the difference",
        write(&arguments, "p", "/s", &nameless).?,
    );
}

test "an import of an upload reads what was fetched, and names what is missing of it" {
    var order: Order = .{
        .id = uuid(1),
        .kind = "import",
        .vdiskId = uuid(9),
        .versionId = uuid(2),
        .number = 1,
        .uploadId = uuid(3),
        .sourceSizeBytes = 4096,
        .sourceSha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    };
    var arguments: Arguments = .{};
    try testing.expectEqual(null, write(&arguments, "p", "/s", &order));
    try testing.expectEqualStrings(
        "imports/.fetched/" ++ comptime uuid(3).toText(),
        arguments.word(7),
    );
    try testing.expectEqual(0xef, import_source.uploadOf(&order).?.sha256[31]);
    order.sourcePath = "imports/linux.raw";
    try testing.expectEqualStrings(
        "it names two images",
        write(&arguments, "p", "/s", &order).?,
    );
    order.sourcePath = null;
    for ([_]?[]const u8{ null, "", "0123", &@as([64]u8, @splat('x')) }) |text| {
        order.sourceSha256 = text;
        try testing.expectEqualStrings(
            "it does not describe the upload",
            write(&arguments, "p", "/s", &order).?,
        );
    }
    order.kind = "verify";
    try testing.expectEqual(null, import_source.uploadOf(&order));
}

test "the longest command line of a job fits" {
    var arguments: Arguments = .{};
    const store_path: [Arguments.store_path_size_max]u8 = @splat('s');
    const program: [64]u8 = @splat('p');
    const path: [import_source.path_size_max]u8 = @splat('p');
    const line: [desired_state.command_line_size_max]u8 = @splat('c');
    const order: Order = .{
        .id = uuid(1),
        .kind = "import",
        .vdiskId = uuid(9),
        .versionId = uuid(2),
        .number = std.math.maxInt(u32),
        .parentVersionId = uuid(4),
        .sourcePath = &path,
        .kernelPath = &path,
        .initrdPath = &path,
        .commandLine = &line,
        .bootFiles = .none,
    };
    try testing.expectEqual(null, write(&arguments, &program, &store_path, &order));
}

const test_id = "11111111-1111-4111-8111-111111111111";
const test_root = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";

test "output lines of a job are parsed, and other text is ignored" {
    const progress = parse(
        "{\"progress\":{\"positionBytes\":5,\"sizeBytes\":9,\"bytesPerSecond\":7}}",
    ).?.progress;
    try testing.expectEqual(5, progress.done_bytes);
    try testing.expectEqual(9, progress.total_bytes);
    try testing.expectEqual(0, parse(
        "{\"progress\":{\"positionBytes\":5,\"sizeBytes\":null}}",
    ).?.progress.total_bytes);
    try testing.expectEqualStrings("disk full?", parse(
        "{\"error\":\"disk full\\u001b\"}",
    ).?.failed.constSlice());
    try testing.expectEqualStrings(
        "exported to exports/lab-1.vhdx, a disk of 4.0 KiB: wrote 512 B",
        parse(
            "{\"exported\":\"" ++ test_id ++ "\",\"format\":\"vhdx\",\"file\":\"exports/lab-1.vhdx\"," ++
                "\"sizeBytes\":4096,\"writtenBytes\":512}",
        ).?.did.constSlice(),
    );
    const head = "{\"version\":\"" ++ test_id ++ "\",";
    const version = parse(head ++ "\"name\":\"Lab\",\"sizeBytes\":4096,\"manifest\":{\"root\":\"" ++
        test_root ++
        "\",\"incarnation\":0,\"counter\":3},\"kernel\":null,\"initrd\":null,\"commandLine\":\"quiet\",\"ownBytes\":7,\"sharedBytes\":8}").?.version;
    try testing.expectEqualStrings(
        "{\"versionId\":\"" ++ test_id ++ "\",\"root\":\"" ++ test_root ++ "\",\"counter\":3,\"sizeBytes\":4096,\"commandLine\":\"quiet\"}",
        version.made.constSlice(),
    );
    try testing.expectEqual(7, version.stored.reclaimable_bytes);
    try testing.expectEqualStrings("Lab", version.stored.image.?.name.slice());
    try testing.expectEqual(4096, version.stored.image.?.size_bytes);
    try testing.expect(!version.stored.image.?.has_kernel and
        version.stored.image.?.parent_id == null);
    try testing.expectEqualStrings(version.made.constSlice(), (try parseMade(
        version.made.constSlice(),
    )).constSlice());
    try testing.expect(parse(
        head ++ "\"problem\":\"a block is damaged\"}",
    ).?.damaged.id.eql(version.stored.version_id));
    try testing.expectEqual(
        8192,
        parse(head ++ "\"atByte\":8192,\"problem\":\"a block is damaged\"}").?.damaged.at_byte,
    );
    try testing.expect(parse("{\"layer\":\"" ++ test_id ++ "\",\"ownBytes\":1}").?.other.is_layer);
    try testing.expectEqual(.importing, parse(
        "{\"import\":\"" ++ test_id ++ "\",\"positionBytes\":1}",
    ).?.other.state);
    for ([_][]const u8{
        "",
        "{",
        "[]",
        "7",
        "{}",
        "{\"progress\":{\"positionBytes\":-1}}",
        "{\"progress\":{\"positionBytes\":9007199254740992}}",
        "\x00\xff",
        "{\"version\":\"x\"}",
        head ++ "\"sizeBytes\":4096}",
        head ++ "\"sizeBytes\":4096,\"manifest\":{\"root\":\"x\",\"counter\":3}}",
        head ++ "\"sizeBytes\":0,\"manifest\":{\"root\":\"" ++ test_root ++ "\",\"counter\":3}}",
    }) |text| try testing.expectEqual(null, parse(text));
    const deep: [line_size_max]u8 = @splat('[');
    try testing.expectEqual(null, parse(&deep));
}

test "the longest created version fits" {
    const quotes: [1024]u8 = @splat('"');
    const hash: [64]u8 = @splat('a');
    const file: BundleFile = .{ .sha256 = &hash, .sizeBytes = number_max };
    var made: Made = .empty;
    try writeMade(&made, &.{
        .versionId = uuid(1),
        .root = test_root,
        .counter = number_max,
        .sizeBytes = number_max,
        .commandLine = &quotes,
        .note = quotes[0..store_job.note_size_max],
        .kernel = file,
        .initrd = file,
    });
    try testing.expect((try parseMade(made.constSlice())).count > 3072);
}
