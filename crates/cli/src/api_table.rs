//! `api-table`: the README's table of APIs, from the one list.

#[expect(clippy::print_stdout, reason = "the output of this subcommand")]
pub(crate) fn run() {
    print!("{}", gateway::api::markdown_table());
}
