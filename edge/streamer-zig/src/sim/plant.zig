//! Bugs that are put into the simulated world on purpose, to show that its checks would find them.

const std = @import("std");

pub const Plant = enum {
    none,
    /// A device takes a fragment for another of its reads.
    fragment_of_another_read,
    /// The edge never sends the last fragment of a read.
    last_fragment_forgotten,
    /// The edge takes every hello as if its cookie were right.
    cookie_not_checked,
    /// The edge does not keep who used a token.
    token_used_twice,
    /// A restarted edge gives the newest version to a boot that began with another.
    version_not_kept,
    /// The store reads one sector beside.
    wrong_sector,
    /// The edge loses its resumption key with its memory.
    resumption_key_lost,

    pub fn parse(text: []const u8) ?Plant {
        return std.meta.stringToEnum(Plant, text);
    }
};
