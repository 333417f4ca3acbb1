#pragma once
#include <cstddef>

#include "experiments/attention/training/attention_config.hpp"
#include "experiments/side_by_side.hpp"

/// `rieszflow attention`: rows of (data set, variant, seed), each an independent unit.
namespace rieszflow::attention {

std::size_t row_count(const Question& question);

/// What the data sets are like, for people.
std::vector<std::string> data_summary(const Question& question);

/// Trains the rows that DIR/rows.json does not have, seed by seed, so that an interrupted study is balanced;
/// then summary.json and report.html, of the rows that are there also after an interruption. DIR/run.h5:
/// phase A of the first kernel row; DIR/models: the encoders of the first seed.
side_by_side::Outcome run(const Question& question, const side_by_side::Setting& setting);

}  // namespace rieszflow::attention
