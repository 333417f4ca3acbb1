# Writes the tables of unseen_tables.toml as CSV with a column "label", classes numbered from 0:
#   Rscript unseen_tables.R FOLDER        (Debian: r-cran-mlbench, r-cran-kernlab)
folder <- commandArgs(trailingOnly = TRUE)[1]
dir.create(folder, showWarnings = FALSE, recursive = TRUE)
data(PimaIndiansDiabetes, Vehicle, Vowel, Satellite, package = "mlbench")
data(spam, package = "kernlab")
write_table <- function(name, frame, label) {
  inputs <- frame[sapply(frame, is.numeric)]
  inputs$label <- as.integer(frame[[label]]) - 1
  write.csv(inputs, file.path(folder, paste0(name, ".csv")), row.names = FALSE, quote = FALSE)
}
write_table("pima", PimaIndiansDiabetes, "diabetes")
write_table("spam", spam, "type")
write_table("vehicle", Vehicle, "Class")
write_table("vowel", Vowel, "Class")
write_table("satellite", Satellite, "classes")
